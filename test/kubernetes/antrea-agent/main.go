// Follows a controller as an agent of Antrea's does, with Antrea's own types and client, and says what it hears: an event
// a line, in JSON. antrea-agent.test.ts builds it in a checkout of Antrea.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"antrea.io/antrea/v2/pkg/apis/controlplane/v1beta2"
	"antrea.io/antrea/v2/pkg/client/clientset/versioned"
)

type heard struct {
	Watch   string `json:"watch"`
	Type    string `json:"type"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Of      string `json:"of,omitempty"`
	Members int    `json:"members"`
	Removed int    `json:"removed"`
	Error   string `json:"error,omitempty"`
}

func main() {
	server := flag.String("server", "", "https://ADDRESS:PORT")
	serverName := flag.String("server-name", "antrea.kube-system.svc", "the name in its certificate")
	ca := flag.String("ca", "", "file with its authority")
	token := flag.String("token", "", "file with the agent's token")
	node := flag.String("node", "", "its node")
	flag.Parse()
	config := &rest.Config{
		Host:            *server,
		BearerTokenFile: *token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: *ca, ServerName: *serverName},
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
		},
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	api := clients.ControlplaneV1beta2()
	options := metav1.ListOptions{FieldSelector: "nodeName=" + *node}
	ctx := context.Background()
	lines := make(chan heard)
	follow := func(name string, open func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
		watching, err := open(ctx, options)
		if err != nil {
			lines <- heard{Watch: name, Error: err.Error()}
			return
		}
		for event := range watching.ResultChan() {
			lines <- tell(name, event)
			policy, isPolicy := event.Object.(*v1beta2.NetworkPolicy)
			if !isPolicy || event.Type != watch.Added {
				continue
			}
			status := &v1beta2.NetworkPolicyStatus{
				ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
				Nodes:      []v1beta2.NetworkPolicyNodeStatus{{NodeName: *node, Generation: policy.Generation}},
			}
			said := heard{Watch: name, Type: "TOLD", Name: policy.Name}
			if err := api.NetworkPolicies().UpdateStatus(ctx, policy.Name, status); err != nil {
				said.Error = err.Error()
			}
			lines <- said
		}
		lines <- heard{Watch: name, Error: "the watch has ended"}
	}
	go follow("networkpolicies", api.NetworkPolicies().Watch)
	go follow("addressgroups", api.AddressGroups().Watch)
	go follow("appliedtogroups", api.AppliedToGroups().Watch)
	go follow("egressgroups", api.EgressGroups().Watch)
	go follow("supportbundlecollections", api.SupportBundleCollections().Watch)
	out := json.NewEncoder(os.Stderr)
	for line := range lines {
		out.Encode(line)
	}
}

func tell(name string, event watch.Event) heard {
	said := heard{Watch: name, Type: string(event.Type), Kind: fmt.Sprintf("%T", event.Object)}
	if object, err := meta.Accessor(event.Object); err == nil {
		said.Name = object.GetName()
	}
	switch object := event.Object.(type) {
	case *v1beta2.NetworkPolicy:
		if object.SourceRef != nil {
			said.Of = object.SourceRef.Namespace + "/" + object.SourceRef.Name
		}
	case *v1beta2.AddressGroup:
		said.Members = len(object.GroupMembers)
	case *v1beta2.AppliedToGroup:
		said.Members = len(object.GroupMembers)
	case *v1beta2.AddressGroupPatch:
		said.Members, said.Removed = len(object.AddedGroupMembers), len(object.RemovedGroupMembers)
	case *v1beta2.AppliedToGroupPatch:
		said.Members, said.Removed = len(object.AddedGroupMembers), len(object.RemovedGroupMembers)
	case *metav1.Status:
		said.Error = object.Message
	}
	return said
}
