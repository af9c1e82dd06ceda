// Package redact removes credentials from what leaves a machine: from text such as logs and messages by their shape,
// and from objects by the fields in which users keep them. It is pure.
//
//keelson:decision
package redact

import "regexp"

// Removed replaces what was removed.
const Removed = "REDACTED"

// secretName is part of the names of settings whose values are secret.
const secretName = `(?:token|passw(?:or)?d|passphrase|secret|credential|authorization|api[-_]?key|access[-_]?key|` +
	`private[-_]?key|signature)`

const (
	// setting matches, as its first group, the name of a setting and what is between the name and the value.
	setting = `(?i)(` + secretName + `[\w.-]*\\*["']?\s*[=:]\s*)`
	// flag matches the same of a flag.
	flag = `(?i)(--?[\w.-]*` + secretName + `[\w.-]*\\*["']?(?:\s+|\s*,\s*)\\*["']?)`
)

// pattern is one shape of a credential. replacement keeps what tells a reader where the credential was.
type pattern struct {
	shape       *regexp.Regexp
	replacement string
}

// patterns are applied in their order: those that know where a credential ends come before those that guess.
var patterns = []pattern{
	// A private key in PEM, its lines separated by line feeds or, in JSON, by \n. If it is cut off, it ends with the
	// text.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`), Removed},
	// The user, and usually the password, of a URL.
	{regexp.MustCompile(`(://)[^/?#\s"'@]+@`), "${1}" + Removed + "@"},
	// An HTTP header Authorization, or a part of it.
	{regexp.MustCompile(`(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}${2}" + Removed},
	// A JSON Web Token, as ServiceAccounts have them.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), Removed},
	// A bootstrap token.
	{regexp.MustCompile(`(^|[^\w.-])[a-z0-9]{6}\.[a-z0-9]{16}\b`), "${1}" + Removed},
	// A setting: NAME=VALUE, NAME: VALUE, "NAME":"VALUE", also with escaped quotes. First where quotes bound the value.
	{regexp.MustCompile(setting + `(\\*)"[^"]*"`), `${1}${2}"` + Removed + `${2}"`},
	{regexp.MustCompile(setting + `'[^']*'`), "${1}'" + Removed + "'"},
	{regexp.MustCompile(setting + `[^\s"'\\,;&)}\]]+`), "${1}" + Removed},
	// A flag with its value in the next argument: --NAME VALUE, also in a list of quoted arguments.
	{regexp.MustCompile(flag + `[^\s"'\\,\]-][^\s"'\\,\]]*`), "${1}" + Removed},
}

// Text returns text without what has the shape of a credential: private keys, users of URLs, bearer and bootstrap
// tokens, and values of settings and flags whose names say that they are secret. A credential without a shape stays.
func Text(text string) string {
	for _, p := range patterns {
		text = p.shape.ReplaceAllString(text, p.replacement)
	}
	return text
}
