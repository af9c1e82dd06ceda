package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

const streamTimeout = 10 * time.Second

// serveProcess is a process that says how it was asked for, then copies its input to its output. The command "exit"
// ends it with code 3, "fail" with an error text on standard error.
func serveProcess(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var wanted []string
	for parameter, stream := range map[string]string{
		"input": corev1.StreamTypeStdin, "output": corev1.StreamTypeStdout, "error": corev1.StreamTypeStderr,
	} {
		if query.Get(parameter) == "1" {
			wanted = append(wanted, stream)
		}
	}
	if query.Get("tty") == "1" {
		wanted = append(wanted, corev1.StreamTypeResize)
	}
	connection, streams := accept(w, r, remotecommand.StreamProtocolV4Name, append(wanted, corev1.StreamTypeError))
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	fmt.Fprintln(streams[corev1.StreamTypeStdout], r.URL.Path, strings.Join(query["command"], " "))
	if stderr := streams[corev1.StreamTypeStderr]; stderr != nil {
		fmt.Fprintln(stderr, "errors")
	}
	if resize := streams[corev1.StreamTypeResize]; resize != nil {
		var size struct{ Width, Height int }
		if err := json.NewDecoder(resize).Decode(&size); err == nil {
			fmt.Fprintf(streams[corev1.StreamTypeStdout], "%dx%d\n", size.Width, size.Height)
		}
	}
	if stdin := streams[corev1.StreamTypeStdin]; stdin != nil {
		_, _ = io.Copy(streams[corev1.StreamTypeStdout], stdin)
	}
	_ = json.NewEncoder(streams[corev1.StreamTypeError]).Encode(statusOf(query))
}

func statusOf(query url.Values) metav1.Status {
	if !slices.Equal(query["command"], []string{"exit"}) {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
		Message: "command terminated with non-zero exit code",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType,
			Message: "3"}}},
	}
}

// servePorts says which port it is asked for and then copies what comes back to where it came from.
func servePorts(w http.ResponseWriter, r *http.Request) {
	connection, streams := accept(w, r, "portforward.k8s.io", []string{corev1.StreamTypeError, corev1.StreamTypeData})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	streams[corev1.StreamTypeError].Close()
	data := streams[corev1.StreamTypeData]
	fmt.Fprintln(data, r.URL.Path, data.Headers().Get(corev1.PortHeader))
	_, _ = io.Copy(data, data)
}

// accept upgrades the connection and waits for the wanted streams; it returns nothing if it has answered with an error.
func accept(w http.ResponseWriter, r *http.Request, protocol string, wanted []string) (httpstream.Connection,
	map[string]httpstream.Stream) {
	if _, err := httpstream.Handshake(r, w, []string{protocol}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, nil
	}
	arrived := make(chan httpstream.Stream, len(wanted))
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream,
		_ <-chan struct{}) error {
		arrived <- stream
		return nil
	})
	if connection == nil {
		return nil, nil
	}
	streams := map[string]httpstream.Stream{}
	for len(streams) < len(wanted) {
		select {
		case stream := <-arrived:
			streams[stream.Headers().Get(corev1.StreamType)] = stream
		case <-time.After(streamTimeout):
			_ = connection.Close()
			return nil, nil
		}
	}
	return connection, streams
}
