// Calls CmdAdd of a server as Go programs do, and prints one JSON line per call.
//
// usage: client FORM SOCKET CALLS CONTAINER_ID CONFIGURATION
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc/status"

	"interop/cnipb"
	"interop/dialing"
)

type line struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Result  string `json:"result"`
	Error   string `json:"error"`
}

func main() {
	calls, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	connection, err := dialing.Dial(os.Args[1], os.Args[2])
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	client := cnipb.NewCniClient(connection)
	for i := 0; i < calls; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		response, err := client.CmdAdd(ctx, &cnipb.CniCmdRequest{CniArgs: &cnipb.CniCmdArgs{
			ContainerId:          os.Args[4],
			Netns:                "/var/run/netns/x",
			Ifname:               "eth0",
			Args:                 "K8S_POD_NAME=web;K8S_POD_NAMESPACE=default",
			Path:                 "/opt/cni/bin",
			NetworkConfiguration: []byte(os.Args[5]),
		}})
		cancel()
		out := line{Code: int(status.Code(err)), Message: status.Convert(err).Message(), Result: string(response.GetCniResult())}
		if response.GetError() != nil {
			out.Error = fmt.Sprintf("%d %s %d", response.Error.Code, response.Error.Message, len(response.Error.Details))
		}
		text, _ := json.Marshal(out)
		fmt.Println(string(text))
	}
}
