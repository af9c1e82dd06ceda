package batch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func sample(n int) []Request {
	var requests []Request
	for i := range n {
		requests = append(requests, Request{Method: "POST", Target: fmt.Sprintf("/api/v1/pods/%d?x=y", i),
			ContentType: "application/json", Accept: strings.Repeat("a", i%3), Body: []byte{0, 1, byte(i)}})
	}
	return requests
}

func written(requests []Request) []byte {
	var batch []byte
	for _, r := range requests {
		batch = AppendRequest(batch, r)
	}
	return batch
}

func TestRequestsOnTheWire(t *testing.T) {
	for _, n := range []int{1, 2, 128} {
		got, err := ReadRequests(written(sample(n)))
		if err != nil || !reflect.DeepEqual(got, sample(n)) {
			t.Errorf("of %d: %v, %v", n, got, err)
		}
	}
	whole := written(sample(2))
	first := len(written(sample(1)))
	for i := range whole {
		got, err := ReadRequests(whole[:i])
		if (err == nil) != (i == first) || i == first && len(got) != 1 {
			t.Errorf("%d of %d bytes: %v, %v", i, len(whole), got, err)
		}
	}
	huge := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, "POST"...)
	for name, row := range map[string]struct {
		batch []byte
		want  string
	}{
		"none":              {nil, "a batch has at least 1 request"},
		"one too many":      {written(sample(129)), "a batch has at most 128 requests"},
		"a length too long": {huge, "requests[0]: the batch ends in the middle of a request"},
		"no number":         {bytes.Repeat([]byte{0xff}, 11), "requests[0]: the batch ends in the middle of a request"},
	} {
		if _, err := ReadRequests(row.batch); err == nil || err.Error() != row.want {
			t.Errorf("%s: %v, want %s", name, err, row.want)
		}
	}
}

func TestAnswersOnTheWire(t *testing.T) {
	want := []Answer{
		{Item: 127, Status: 201, Header: http.Header{"Warning": {"a", "b"}, "Content-Type": {"x"}},
			Body: []byte("body")},
		{Item: 0, Status: 409, Header: http.Header{}, Body: []byte{}},
	}
	var all []byte
	for _, a := range want {
		all = AppendAnswer(all, a)
	}
	first := len(AppendAnswer(nil, want[0]))
	for end := range len(all) + 1 {
		from := bufio.NewReader(bytes.NewReader(all[:end]))
		for i := range want {
			got, err := ReadAnswer(from)
			switch whole := end == len(all) || i == 0 && end >= first; {
			case whole && (err != nil || !reflect.DeepEqual(got, want[i])):
				t.Fatalf("%d bytes: answer %d is %v, %v", end, i, got, err)
			case whole:
				continue
			case end == 0 || i == 1 && end == first:
				if !errors.Is(err, io.EOF) {
					t.Errorf("%d bytes, the end: %v", end, err)
				}
			case err == nil || errors.Is(err, io.EOF):
				t.Errorf("%d bytes, in the middle of an answer: %v", end, err)
			}
			break
		}
	}
	for name, wrong := range map[string][]byte{
		"place":  AppendAnswer(nil, Answer{Item: 128, Status: 200}),
		"status": AppendAnswer(nil, Answer{Status: 99}),
		"size":   {0, 200, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f},
	} {
		if a, err := ReadAnswer(bufio.NewReader(bytes.NewReader(wrong))); err == nil {
			t.Errorf("%s: %v", name, a)
		}
	}
}
