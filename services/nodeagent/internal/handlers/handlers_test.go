package handlers

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var web = &corev1.Container{Name: "c", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}

func TestPort(t *testing.T) {
	for _, row := range []struct {
		port intstr.IntOrString
		want int
	}{
		{intstr.FromInt32(80), 80}, {intstr.FromString("http"), 8080}, {intstr.FromString("81"), 81},
		{intstr.FromString("none"), 0}, {intstr.FromInt32(0), 0}, {intstr.FromInt32(65536), 0},
		{intstr.FromString(""), 0},
	} {
		got, err := Port(row.port, web)
		if got != row.want || (row.want == 0) != (err != nil) {
			t.Errorf("%v: %d, %v", row.port.String(), got, err)
		}
	}
}

// POD-136
func TestRequest(t *testing.T) {
	port := intstr.FromString("http")
	for want, get := range map[string]corev1.HTTPGetAction{
		"http://10.1.0.7:8080/":            {Port: port},
		"http://10.1.0.7:8080/a/b?c=d&e":   {Port: port, Path: "/a/b?c=d&e"},
		"https://10.1.0.7:8080/x":          {Port: port, Path: "x", Scheme: corev1.URISchemeHTTPS},
		"http://other.example:80/%20":      {Port: intstr.FromInt32(80), Path: "/%20", Host: "other.example"},
		"http://[fd00::7]:80/":             {Port: intstr.FromInt32(80), Host: "fd00::7"},
		"http://10.1.0.7:80/evil.example/": {Port: intstr.FromInt32(80), Path: "///evil.example/"},
	} {
		request, err := Request(t.Context(), &get, web, "10.1.0.7", "1")
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := request.URL.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, err := Request(t.Context(), &corev1.HTTPGetAction{Port: port, Path: "/%zz"}, web, "10.1.0.7",
		"1"); err == nil {
		t.Error("a bad path was taken")
	}
}

func TestHeaders(t *testing.T) {
	headers := func(list ...corev1.HTTPHeader) *http.Request {
		request, err := Request(t.Context(), &corev1.HTTPGetAction{Port: intstr.FromInt32(80), HTTPHeaders: list}, web,
			"10.1.0.7", "1")
		if err != nil {
			t.Fatal(err)
		}
		return request
	}
	usual := headers()
	if usual.Header.Get("User-Agent") != "kube-probe/1" || usual.Header.Get("Accept") != "*/*" ||
		usual.Host != "10.1.0.7:80" {
		t.Errorf("%v, host %s", usual.Header, usual.Host)
	}
	own := headers(corev1.HTTPHeader{Name: "user-agent", Value: "me"}, corev1.HTTPHeader{Name: "accept", Value: ""},
		corev1.HTTPHeader{Name: "host", Value: "vhost"}, corev1.HTTPHeader{Name: "X-Two", Value: "1"},
		corev1.HTTPHeader{Name: "X-Two", Value: "2"})
	if _, sent := own.Header["Accept"]; sent || own.Header.Get("User-Agent") != "me" || own.Host != "vhost" ||
		len(own.Header["X-Two"]) != 2 {
		t.Errorf("%v, host %s", own.Header, own.Host)
	}
}
