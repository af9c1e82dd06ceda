package credentialprovider

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/distribution/reference"
)

// pattern is an entry of matchImages, or a key in a plugin's answer: HOST[:PORT][/PATH].
type pattern struct {
	// host are the parts of the host between the dots. Each may have * for any characters of that part.
	host []string
	// port is empty for images without a port.
	port string
	// path is what the image's path begins with, with the slash before it; empty for any.
	path string
}

var errPattern = errors.New("must be HOST[:PORT][/PATH] without a scheme; * may stand only in HOST")

func parsePattern(text string) (pattern, error) {
	where, _, hasPath := strings.Cut(text, "/")
	p := pattern{}
	if hasPath {
		p.path = text[len(where):]
	}
	host, port, hasPort := cutPort(where)
	if hasPort {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return pattern{}, errPattern
		}
		p.port = port
	}
	if strings.ContainsFunc(p.path, isOutsidePath) || strings.Contains(p.path, "//") {
		return pattern{}, errPattern
	}
	if p.host = partsOf(host); p.host == nil {
		return pattern{}, errPattern
	}
	return p, nil
}

// cutPort separates the port from a host, which may be an IPv6 address in brackets.
func cutPort(where string) (host, port string, hasPort bool) {
	if end := strings.LastIndex(where, "]"); strings.HasPrefix(where, "[") && end > 0 {
		host, rest := where[:end+1], where[end+1:]
		port, hasPort = strings.CutPrefix(rest, ":")
		if rest != "" && !hasPort {
			return "", "", false
		}
		return host, port, hasPort
	}
	return strings.Cut(where, ":")
}

// partsOf returns the parts of a host; nil if it is none. An address in brackets is one part.
func partsOf(host string) []string {
	if address, ok := strings.CutPrefix(host, "["); ok {
		address, ok = strings.CutSuffix(address, "]")
		if !ok || address == "" || strings.Trim(address, "0123456789abcdefABCDEF:.") != "" {
			return nil
		}
		return []string{strings.ToLower(host)}
	}
	parts := strings.Split(host, ".")
	for _, part := range parts {
		if part == "" || strings.ContainsFunc(part, isOutsideHost) {
			return nil
		}
	}
	return parts
}

func isOutsideHost(r rune) bool { return !isName(r) && r != '*' }
func isOutsidePath(r rune) bool { return !isName(r) && r != '.' && r != '/' }

func isName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// matches reports whether the pattern is for an image: all parts of the host match, the port is the same, and the
// image's path begins with the pattern's.
func (p pattern) matches(image reference.Named) bool {
	host, port, _ := cutPort(reference.Domain(image))
	parts := partsOf(host)
	if port != p.port || len(parts) != len(p.host) || !strings.HasPrefix("/"+reference.Path(image), p.path) {
		return false
	}
	for i, part := range parts {
		if isAddress := strings.HasPrefix(part, "["); isAddress || strings.HasPrefix(p.host[i], "[") {
			if part != p.host[i] {
				return false
			}
			continue
		}
		if ok, err := path.Match(p.host[i], part); err != nil || !ok {
			return false
		}
	}
	return true
}
