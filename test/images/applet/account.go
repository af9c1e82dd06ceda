package applet

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// account holds a client's credentials and trusted authorities. The zero account is anonymous, and trusts the
// system's authorities.
type account struct {
	token       string
	authorities *x509.CertPool
}

// readAccount reads what a Pod is given of its ServiceAccount. No folder means anonymous.
func readAccount(folder string) (account, error) {
	if folder == "" {
		return account{}, nil
	}
	token, err := os.ReadFile(filepath.Join(folder, "token"))
	if err != nil {
		return account{}, err
	}
	file := filepath.Join(folder, "ca.crt")
	authorities, err := os.ReadFile(file)
	if err != nil {
		return account{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return account{}, fmt.Errorf("%s holds no certificate", file)
	}
	return account{token: strings.TrimSpace(string(token)), authorities: pool}, nil
}
