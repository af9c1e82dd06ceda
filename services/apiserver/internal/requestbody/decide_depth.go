package requestbody

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxDepth is how deep lists and objects of a body may lie in each other. No object of the API comes near it; some of
// the library's decoders take time in the square of the depth.
const maxDepth = 100

// checkDepth refuses JSON that nests too deep. It takes one look at each byte; what is no JSON is left to the decoder.
func checkDepth(body []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return apierrors.NewBadRequest(fmt.Sprintf(
					"the body nests lists and objects more than %d deep at byte %d: at most %d is allowed", maxDepth, i,
					maxDepth))
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
