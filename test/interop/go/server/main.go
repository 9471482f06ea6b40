// Serves Cni as a Go agent does. What CmdAdd answers is chosen by the container id, as in grpc-js-server.ts.
//
// usage: server SOCKET
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/golang/protobuf/ptypes/any"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"interop/cnipb"
)

type server struct {
	cnipb.UnimplementedCniServer
}

func (*server) CmdAdd(ctx context.Context, request *cnipb.CniCmdRequest) (*cnipb.CniCmdResponse, error) {
	args := request.GetCniArgs()
	what := args.GetContainerId()
	switch {
	case what == "echo":
		return &cnipb.CniCmdResponse{CniResult: args.NetworkConfiguration}, nil
	case what == "arguments":
		text := strings.Join([]string{args.ContainerId, args.Netns, args.Ifname, args.Args, args.Path}, "|")
		return &cnipb.CniCmdResponse{CniResult: []byte(text)}, nil
	case what == "error":
		return &cnipb.CniCmdResponse{Error: &cnipb.Error{
			Code:    cnipb.ErrorCode_CONFIG_INTERFACE_FAILURE,
			Message: "no bridge",
			Details: []*any.Any{{TypeUrl: "type.example/a", Value: []byte{1, 2, 3}}, {TypeUrl: "type.example/b"}},
		}}, nil
	case what == "traceparent":
		values, _ := metadata.FromIncomingContext(ctx)
		return &cnipb.CniCmdResponse{CniResult: []byte(strings.Join(values.Get("traceparent"), ","))}, nil
	case what == "remaining":
		deadline, _ := ctx.Deadline()
		left := strconv.FormatInt(time.Until(deadline).Milliseconds(), 10)
		return &cnipb.CniCmdResponse{CniResult: []byte(left)}, nil
	case what == "silence":
		<-ctx.Done()
		time.Sleep(time.Minute)
		return nil, ctx.Err()
	case strings.HasPrefix(what, "bytes-"):
		size, _ := strconv.Atoi(strings.TrimPrefix(what, "bytes-"))
		return &cnipb.CniCmdResponse{CniResult: bytes.Repeat([]byte("x"), size)}, nil
	case strings.HasPrefix(what, "status-"):
		code, _ := strconv.Atoi(strings.TrimPrefix(what, "status-"))
		return nil, status.Error(codes.Code(code), string(args.NetworkConfiguration))
	}
	return nil, status.Error(codes.InvalidArgument, what)
}

func main() {
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	// The messages of the test are as long as a client of ours takes them.
	s := grpc.NewServer(grpc.MaxRecvMsgSize(4<<20), grpc.MaxSendMsgSize(16<<20))
	cnipb.RegisterCniServer(s, &server{})
	fmt.Println("ready")
	if err := s.Serve(listener); err != nil {
		panic(err)
	}
}
