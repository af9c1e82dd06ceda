package view

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProgrammedState(t *testing.T) {
	const answer = `{"programmed":true,"services":3,"ports":[
		{"name":"http","protocol":"TCP","clusterIPs":["10.96.0.7","fd00::7"],"port":80,"nodePort":30080,
		 "endpoints":["10.0.0.1:8080","10.0.0.2:8080"]},
		{"name":"","protocol":"UDP","clusterIPs":["10.96.0.7"],"port":53}]}`
	for _, row := range []struct {
		name   string
		status int
		answer string
		err    error
		want   string
	}{
		{"none runs", 404, "", errors.New("not found"), "runs no service proxy of Keelson's"},
		{"silent", 0, "", errors.New("context deadline exceeded"), "does not answer: context deadline exceeded"},
		{"garbled", 200, "<html>", nil, "answers what cannot be read: "},
		{"not yet", 200, `{"programmed":false}`, nil, "has not programmed it"},
		{"no ports", 200, `{"programmed":true}`, nil, "has programmed it"},
		{"since", 200, `{"programmed":true,"since":"2026-01-10T12:00:00Z"}`, nil, "has programmed it since 2026-01-10 "},
		{"a problem", 200, `{"programmed":true,"problems":["no SCTP here"]}`, nil, "has programmed it: no SCTP here"},
		{"all", 200, answer, nil, "has programmed it: http 80/TCP of 10.96.0.7, fd00::7 and node port 30080 to " +
			"10.0.0.1:8080, 10.0.0.2:8080; 53/UDP of 10.96.0.7 is refused, there is no endpoint"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := programmedState(row.status, []byte(row.answer), row.err)
			whole := !strings.HasSuffix(row.want, " ")
			if !strings.HasPrefix(got, row.want) || whole && got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestWriteService(t *testing.T) {
	s := Service{Workload: Workload{Kind: "Service", Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web"}}}, Nodes: []NodeView{{"node-1", "has programmed it"}},
		NodesUnknown: "listing the nodes: refused"}
	var out bytes.Buffer
	s.Write(&out)
	for _, want := range []string{"Service default/web: made at", "\nnodes:\n  listing the nodes: refused\n",
		"\n  node-1: has programmed it\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
