package requestbody

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxMessages is how deep messages are looked into. Those of the API lie in each other a few times.
const maxMessages = 32

// envelope begins what Kubernetes sends as protobuf.
var envelope = []byte("k8s\x00")

// checkProtobuf refuses protobuf that has JSON inside, as the managed fields of an object, which nests too deep.
func checkProtobuf(body []byte) error {
	if bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) <= maxDepth {
		return nil
	}
	return checkMessage(bytes.TrimPrefix(body, envelope), 0)
}

// checkMessage looks at what may be a message, and at all that it may hold.
func checkMessage(message []byte, level int) error {
	for len(message) > 0 && level < maxMessages {
		_, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(1, kind, message); n < 0 {
				return nil
			}
			message = message[n:]
			continue
		}
		field, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if err := checkField(field, level); err != nil {
			return err
		}
	}
	return nil
}

// checkField looks at a field, which is a message, JSON or anything else. No message of the API begins as JSON does:
// that would be a group, of which it has none.
func checkField(field []byte, level int) error {
	if trimmed := bytes.TrimLeft(field, " \t\r\n"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		if err := checkDepth(trimmed); err != nil && isJSON(trimmed) {
			return err
		}
		return nil
	}
	return checkMessage(field, level+1)
}

// isJSON is whether text is JSON as deep as is allowed: what is no JSON, as the bytes of a Secret, is not looked into
// by anybody.
func isJSON(text []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for depth := 0; depth <= maxDepth; {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return true
}
