package batch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	// Path is where batches are sent to, by POST.
	Path = "/batch"
	// ContentType is that of a batch and of its answer.
	ContentType = "application/vnd.keelson.batch.v1"
	// MaxItems is how many requests a batch may have.
	MaxItems = 128
	// MaxBytes is how long a batch may be.
	MaxBytes = 1 << 20
	// OmittedHeader marks an answer whose body did not fit into the answer of the batch: its status is that of the
	// request, and its body a Status in place of what would have been there. Its value is how long that was.
	OmittedHeader = "Keelson-Answer-Omitted"
	// maxAnswer is how long one part of an answer may be.
	maxAnswer = 64 << 20
)

// Request is one of a batch. In the batch it is its fields in their order, each behind its length.
type Request struct {
	Method string
	// Target is the path with the query.
	Target string
	// ContentType is that of the body, Accept that of the answer that is wanted.
	ContentType, Accept string
	Body                []byte
}

// AppendRequest appends a request to a batch.
func AppendRequest(to []byte, r Request) []byte {
	for _, text := range []string{r.Method, r.Target, r.ContentType, r.Accept} {
		to = appendPart(to, text)
	}
	return appendPart(to, r.Body)
}

func appendPart[T string | []byte](to []byte, part T) []byte {
	return append(binary.AppendUvarint(to, uint64(len(part))), part...)
}

// size is an upper bound of what AppendRequest appends.
func (r Request) size() int {
	return len(r.Method) + len(r.Target) + len(r.ContentType) + len(r.Accept) + len(r.Body) + 5*binary.MaxVarintLen32
}

// ReadRequests returns the requests of a batch. Their bodies are parts of it.
func ReadRequests(batch []byte) ([]Request, error) {
	var requests []Request
	for len(batch) > 0 {
		if len(requests) == MaxItems {
			return nil, fmt.Errorf("a batch has at most %d requests", MaxItems)
		}
		var r, last Request
		if len(requests) > 0 {
			last = requests[len(requests)-1]
		}
		for _, field := range []struct {
			to   *string
			last string
		}{{&r.Method, last.Method}, {&r.Target, ""}, {&r.ContentType, last.ContentType}, {&r.Accept, last.Accept}} {
			part, rest, ok := cutPart(batch)
			if !ok {
				return nil, fmt.Errorf("requests[%d]: the batch ends in the middle of a request", len(requests))
			}
			// Most requests say the same there as the one before.
			if *field.to = field.last; string(part) != field.last {
				*field.to = string(part)
			}
			batch = rest
		}
		var ok bool
		if r.Body, batch, ok = cutPart(batch); !ok {
			return nil, fmt.Errorf("requests[%d]: the batch ends in the middle of a request", len(requests))
		}
		requests = append(requests, r)
	}
	if len(requests) == 0 {
		return nil, errors.New("a batch has at least 1 request")
	}
	return requests, nil
}

func cutPart(from []byte) (part, rest []byte, ok bool) {
	length, n := binary.Uvarint(from)
	if n <= 0 || length > uint64(len(from)-n) {
		return nil, nil, false
	}
	end := n + int(length)
	return from[n:end:end], from[end:], true
}

// Answer is that to one request of a batch. Answers come in any order.
type Answer struct {
	// Item is the place of the request in the batch.
	Item   int
	Status int
	Header http.Header
	Body   []byte
}

// AppendAnswer appends an answer: its place and status, how many values the header has, these with their names, and the
// body.
func AppendAnswer(to []byte, a Answer) []byte {
	to = binary.AppendUvarint(to, uint64(a.Item))
	to = binary.AppendUvarint(to, uint64(a.Status))
	values := 0
	for _, of := range a.Header {
		values += len(of)
	}
	to = binary.AppendUvarint(to, uint64(values))
	for name, of := range a.Header {
		for _, value := range of {
			to = appendPart(appendPart(to, name), value)
		}
	}
	return appendPart(to, a.Body)
}

// ReadAnswer reads the next answer. At the end of all the error is io.EOF.
func ReadAnswer(from *bufio.Reader) (Answer, error) {
	if _, err := from.Peek(1); err != nil {
		return Answer{}, err
	}
	a, err := readWhole(from)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return a, err
}

func readWhole(from *bufio.Reader) (Answer, error) {
	var numbers [3]uint64
	for i := range numbers {
		n, err := binary.ReadUvarint(from)
		if err != nil {
			return Answer{}, err
		}
		numbers[i] = n
	}
	if numbers[0] >= MaxItems || numbers[1] < 100 || numbers[1] > 999 {
		return Answer{}, fmt.Errorf("an answer %d of status %d, which there cannot be", numbers[0], numbers[1])
	}
	a := Answer{Item: int(numbers[0]), Status: int(numbers[1]), Header: http.Header{}}
	for range numbers[2] {
		name, err := readPart(from)
		if err != nil {
			return Answer{}, err
		}
		value, err := readPart(from)
		if err != nil {
			return Answer{}, err
		}
		a.Header.Add(string(name), string(value))
	}
	var err error
	a.Body, err = readPart(from)
	return a, err
}

func readPart(from *bufio.Reader) ([]byte, error) {
	length, err := binary.ReadUvarint(from)
	if err != nil {
		return nil, err
	}
	if length > maxAnswer {
		return nil, fmt.Errorf("a part of %d bytes, of at most %d", length, maxAnswer)
	}
	part := make([]byte, length)
	_, err = io.ReadFull(from, part)
	return part, err
}
