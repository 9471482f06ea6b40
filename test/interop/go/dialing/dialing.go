// Package dialing names a unix socket in the forms that Go programs use; each makes another :authority.
package dialing

import (
	"context"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc"
)

// Dial connects when the first call is made.
func Dial(form, socket string) (*grpc.ClientConn, error) {
	dialer := grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	})
	switch form {
	case "url":
		return grpc.Dial("unix:"+socket, grpc.WithInsecure())
	case "path":
		return grpc.Dial(socket, grpc.WithInsecure(), dialer)
	case "encoded":
		// What later releases make of the path by themselves.
		return grpc.Dial(socket, grpc.WithInsecure(), dialer, grpc.WithAuthority(strings.ReplaceAll(socket, "/", "%2F")))
	}
	return nil, fmt.Errorf("form is %q, wanted url, path or encoded", form)
}
