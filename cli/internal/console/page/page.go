// Package page has the files of the console's page. A browser runs them as they are here: nothing builds them.
package page

import "embed"

// Files are index.html and what it names.
//
//go:embed index.html style.css icon.svg *.js
var Files embed.FS
