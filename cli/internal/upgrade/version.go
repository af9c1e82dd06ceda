package upgrade

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"
)

// Version is what a program says of itself with --version. The zero Version is of a program that says none.
type Version struct {
	text string
	// numbered is the release that the text names or that the build came after; nil if the text has no number, as that
	// of a commit without a tag.
	numbered *version.Version
	// ahead is how many commits the build came after that.
	ahead int
}

// described is what git describe --tags --always --dirty prints of a commit with a tag such as v1.2.3 or 1.2.3-rc.1.
var described = regexp.MustCompile(`^v?(\d+\.\d+)(\.\d+)?(-[0-9A-Za-z.-]+?)??(?:-(\d+)-g[0-9a-f]+)?(?:-dirty)?$`)

// ParseVersion reads what a program says; it may say anything.
func ParseVersion(text string) Version {
	v := Version{text: text}
	parts := described.FindStringSubmatch(text)
	if parts == nil {
		return v
	}
	numbered, err := version.ParseSemantic(parts[1] + cmp.Or(parts[2], ".0") + parts[3])
	if err != nil {
		return v
	}
	v.numbered = numbered
	v.ahead, _ = strconv.Atoi(parts[4]) // digits, or none
	return v
}

// String returns the version as the program says it.
func (v Version) String() string { return cmp.Or(v.text, "an unknown version") }

// Numbered reports whether it is known where the version stands among others.
func (v Version) Numbered() bool { return v.numbered != nil }

// Minor returns the minor version as people write it, such as v1.2.
func (v Version) Minor() string {
	return fmt.Sprintf("v%d.%d", v.numbered.Major(), v.numbered.Minor())
}

// older reports whether a numbered version comes before another one.
func (v Version) older(than Version) bool {
	if v.numbered.EqualTo(than.numbered) {
		return v.ahead < than.ahead
	}
	return v.numbered.LessThan(than.numbered)
}

// otherMajor is more minor versions than any rule allows.
const otherMajor = 1000

// minors returns by how many minor versions a numbered version is newer than another one; negative where it is older.
// Nothing is known about the steps between major versions: they count as far apart.
func (v Version) minors(than Version) int {
	majors := int(v.numbered.Major()) - int(than.numbered.Major())
	return majors*otherMajor + int(v.numbered.Minor()) - int(than.numbered.Minor())
}
