// Makes one call of the allocator's service, or of its health check, as Go programs do, and prints one JSON line.
//
// usage: ipam FORM SOCKET CALL [ARGUMENT ...]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"interop/dialing"
	"interop/pipettepb"
)

type line struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Answer  interface{} `json:"answer"`
}

func call(ctx context.Context, connection *grpc.ClientConn, name string, args []string) (interface{}, error) {
	ipam := pipettepb.NewIpamClient(connection)
	switch name {
	case "allocate":
		return ipam.Allocate(ctx, &pipettepb.AllocateRequest{
			ContainerId: args[0], Ifname: "eth0", NetworkConfiguration: []byte(args[1]),
		})
	case "release":
		return ipam.Release(ctx, &pipettepb.ReleaseRequest{Network: args[0], ContainerId: args[1], Ifname: "eth0"})
	case "get":
		return ipam.Get(ctx, &pipettepb.GetRequest{Network: args[0], ContainerId: args[1], Ifname: "eth0"})
	case "check":
		return ipam.Check(ctx, &pipettepb.CheckRequest{})
	case "stats":
		return ipam.Stats(ctx, &pipettepb.StatsRequest{Network: args[0]})
	case "gc":
		request := &pipettepb.CollectRequest{Network: args[0], Valid: &pipettepb.Attachments{}}
		for _, id := range args[1:] {
			request.Valid.Attachments = append(request.Valid.Attachments, &pipettepb.Attachment{ContainerId: id, Ifname: "eth0"})
		}
		return ipam.Gc(ctx, request)
	case "gc-unsaid":
		return ipam.Gc(ctx, &pipettepb.CollectRequest{Network: args[0]})
	case "list":
		leases, err := ipam.List(ctx, &pipettepb.ListRequest{Network: args[0]})
		if err != nil {
			return nil, err
		}
		var addresses []string
		for {
			lease, err := leases.Recv()
			if err == io.EOF {
				return addresses, nil
			}
			if err != nil {
				return nil, err
			}
			addresses = append(addresses, lease.Address)
		}
	case "health":
		return health.NewHealthClient(connection).Check(ctx, &health.HealthCheckRequest{Service: args[0]})
	case "watch":
		changes, err := health.NewHealthClient(connection).Watch(ctx, &health.HealthCheckRequest{Service: args[0]})
		if err != nil {
			return nil, err
		}
		return changes.Recv()
	}
	return nil, fmt.Errorf("call is %q, wanted one of the service", name)
}

func main() {
	connection, err := dialing.Dial(os.Args[1], os.Args[2])
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := call(ctx, connection, os.Args[3], os.Args[4:])
	text, err := json.Marshal(line{Code: int(status.Code(err)), Message: status.Convert(err).Message(), Answer: answer})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
