package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Everything that a command prints, including errors, reaches the terminal as text.
func TestNothingSteersTheTerminal(t *testing.T) {
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(c *cobra.Command, _ []string) error {
		fmt.Fprint(c.OutOrStdout(), "web\x1b[2J\xe2\x80")
		fmt.Fprint(c.ErrOrStderr(), "a\rb\n")
		return errors.New("pod \u202e is refused")
	}}
	var out, errOut bytes.Buffer
	if code := execute(t.Context(), root, nil, &out, &errOut); code != 1 || out.String() != `web\u001b[2J\xe2\x80` ||
		errOut.String() != `a\u000db`+"\n"+`keel: pod \u202e is refused`+"\n" {
		t.Errorf("status %d, %q, %q", code, out.String(), errOut.String())
	}
}

// joinLine is what a worker joins by.
const joinLine = "join 192.0.2.1 --token abcdef.0123456789abcdef " + pin

// pin is a hash as it is typed.
const pin = "--discovery-token-ca-cert-hash sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// Each mistake gets one line that names it, and the status of a mistake.
func TestMistakesGetOneLine(t *testing.T) {
	t.Setenv("KEELSON_DATA_DIR", t.TempDir())
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"bogus":                       {2, `unknown command "bogus"`},
		"up --nosuch":                 {2, "unknown flag: --nosuch"},
		"up extra":                    {2, `unexpected argument "extra"`},
		"up --nodes many":             {2, `--nodes: "many" is not a whole number`},
		"up --nodes -1":               {2, "--nodes: -1 must be between 0 and 99"},
		"up --nodes 100":              {2, "--nodes: 100 must be between 0 and 99"},
		"up --port 70000":             {2, "--port: 70000 must be between 0 and 65535"},
		"up --timeout 0s":             {2, "--timeout: 0s must be greater than 0"},
		"up --log-level loud":         {2, `--log-level: "loud" must be debug, info, warn or error`},
		"up --bind-address here":      {2, `--bind-address: "here" must be an IPv4 address`},
		"up --bind-address 127.0.0.1": {2, `--bind-address: Pods cannot reach 127.0.0.1, a loopback address`},
		"up --bind-address ::1":       {2, `--bind-address: "::1" must be an IPv4 address`},
		"up --pod-range 10.0.0.0":     {2, `--pod-cidr: "10.0.0.0" must be an IPv4 network`},
		"up --service-range x":        {2, `--service-cidr: "x" must be an IPv4 network`},
		"up --service-cidr 10.0.0.0/16,fd00::/112,fd01::/112": {2, "--service-cidr: " +
			"10.0.0.0/16,fd00::/112,fd01::/112 are 3 networks: give one of IPv4, or one of each family"},
		"init --pod-cidr fd00::/56": {2, "--pod-cidr: fd00::/56 is of IPv6, which a mesh has only beside IPv4: give " +
			"IPV4,fd00::/56, for example 10.244.0.0/16,fd00:10:244::/56"},
		"up --dns bind":                           {2, `--dns: "bind" must be coredns, none or an IPv4 address that Pods can ask`},
		"up --dns 127.0.0.53":                     {2, `--dns: "127.0.0.53" must be`},
		"up --pod-network bridge":                 {2, `--pod-network: "bridge" must be routes, vxlan or none`},
		"up --service-proxy iptables":             {2, `--service-proxy: "iptables" must be nftables or none`},
		"up --cluster-domain Corp_":               {2, `--cluster-domain: "Corp_": a lowercase RFC 1123 subdomain must consist of`},
		"up --cgroup-driver runc":                 {2, `--cgroup-driver: "runc" must be cgroupfs or systemd`},
		"up --programs /nosuch":                   {1, "--programs: keelson-apiserver is missing in /nosuch"},
		"top extra":                               {2, `unexpected argument "extra"`},
		"top --interval 0s":                       {2, "--interval: 0s must be greater than 0"},
		"top --pods -1":                           {2, "--pods: -1 must be 0 or more"},
		"top -o yaml":                             {2, `--output: "yaml" must be json, or left out for a table`},
		"console extra":                           {2, `unexpected argument "extra"`},
		"console --port -1":                       {2, "--port: -1 must be between 0 and 65535"},
		"console --port 65536":                    {2, "--port: 65536 must be between 0 and 65535"},
		"console":                                 {1, "holds no mesh"},
		"support extra":                           {2, `unexpected argument "extra"`},
		"support --timeout 0s -o /nosuch/b":       {1, "holds no mesh"},
		"support --output /":                      {2, "--output: / is not a file"},
		"init extra":                              {2, `unexpected argument "extra"`},
		"init --nodes 2":                          {2, "unknown flag: --nodes"},
		"init --port -1":                          {2, "--port: -1 must be between 0 and 65535"},
		"init --timeout 0s":                       {2, "--timeout: 0s must be greater than 0"},
		"init --control-plane-endpoint a_b":       {2, `--control-plane-endpoint: "a_b" must be a name or an address, with `},
		"init --control-plane-endpoint mesh:0":    {2, `--control-plane-endpoint: "mesh:0" must be a name or an address`},
		"init --control-plane-endpoint 127.0.0.1": {2, `"127.0.0.1" leads each machine to itself`},
		"init --control-plane-endpoint localhost": {2, `"localhost" leads each machine to itself`},
		"init --control-plane-endpoint 0.0.0.0":   {2, `"0.0.0.0" leads each machine to itself`},
		"init --bind-address 127.0.0.1":           {2, `--bind-address: Pods cannot reach 127.0.0.1, a loopback address`},
		"join extra extra":                        {2, `unexpected argument "extra"`},
		"join 192.0.2.1":                          {2, "--token is missing: keel token create --print-join-command"},
		"join --token abcdef.0123456789abcdef":    {2, "ADDRESS:PORT is missing"},
		"join 192.0.2.1 --token abcdef.0123456789abcdef": {2,
			"--discovery-token-ca-cert-hash is missing: without it"},
		"join 192.0.2.1 --token abcdef.secret " + pin:             {2, "--token: a token is ID.SECRET"},
		"join 192.0.2.1:0 --token abcdef.0123456789abcdef " + pin: {2, `"192.0.2.1:0" must be the apiserver's address`},
		"join a_b --token abcdef.0123456789abcdef " + pin:         {2, `"a_b" must be the apiserver's address`},
		"join --discovery-token-ca-cert-hash sha256:00":           {2, `"sha256:00" must be sha256: and 64`},
		"join --node-ip 127.0.0.1":                                {2, `--node-ip: "127.0.0.1" must be an IPv4 address of this machine`},
		"join --timeout 0s":                                       {2, "--timeout: 0s must be greater than 0"},
		"token bogus":                                             {2, `unknown command "bogus": keel token has create, list and delete`},
		"token create --ttl -1s":                                  {2, "--ttl: -1s must be a second or more, or 0"},
		"token create --ttl 999ms":                                {2, "--ttl: 999ms must be a second or more, or 0"},
		"token create":                                            {1, "holds no mesh"},
		"token list":                                              {1, "holds no mesh"},
		"token delete":                                            {2, "TOKEN is missing"},
		"token delete ABCDEF":                                     {2, "TOKEN: neither a token nor its ID"},
		"token delete abcdef":                                     {1, "holds no mesh"},
		"certs bogus":                                             {2, `unknown command "bogus": keel certs has list, renew and rotate-ca`},
		"certs list extra":                                        {2, `unexpected argument "extra"`},
		"certs list -o yaml":                                      {2, `--output: "yaml" must be json`},
		"certs list":                                              {1, "holds no mesh"},
		"certs renew":                                             {1, "holds no mesh"},
		"certs renew --new-key x y":                               {1, "holds no mesh"},
		"upgrade bogus":                                           {2, `"bogus" must be all or one of apiserver, scheduler,`},
		"upgrade all extra":                                       {2, `unexpected argument "extra"`},
		"upgrade --ready-within 0s":                               {2, "--ready-within: 0s must be greater than 0"},
		"upgrade --rollback --from x":                             {2, "--from: --rollback goes to what is kept"},
		"upgrade --timeout 0s":                                    {1, "holds no mesh"},
		"upgrade":                                                 {1, "holds no mesh"},
		"preflight reset":                                         {2, `"reset" must be init, join or up`},
		"preflight init up":                                       {2, `unexpected argument "up"`},
		"preflight --port -1":                                     {2, "--port: -1 must be between 0 and 65535"},
		"preflight --timeout 0s":                                  {2, "--timeout: 0s must be greater than 0"},
		"reset":                                                   {2, "--yes is missing: reset ends the mesh's Pods"},
		"reset extra":                                             {2, `unexpected argument "extra"`},
		joinLine + " --control-plane":                             {2, "--control-plane: needs --certificate-key"},
		joinLine + " --certificate-key 1234":                      {2, "--control-plane: needs --certificate-key"},
		joinLine + " --control-plane --certificate-key 1234": {2,
			"--certificate-key: a key is 64 hexadecimal digits"},
		joinLine + " --port 65536":              {2, "--port: 65536 must be between 0 and 65535"},
		"join --certificate-key 1234":           {2, "ADDRESS:PORT is missing"},
		"token create --control-plane --ttl 3h": {2, "--ttl: 3h0m0s must be between a second and 2h0m0s"},
		"token create --control-plane --ttl 0":  {2, "--ttl: 0s must be between a second and 2h0m0s"},
		"store members":                         {1, "holds no mesh"},
		"store remove-member x":                 {1, "holds no mesh"},
		"reset --yes=maybe":                     {2, `--yes`},
		"down extra":                            {2, `unexpected argument "extra"`},
		"status -o yaml":                        {2, `--output: "yaml" must be json`},
		"status":                                {1, "holds no mesh"},
		"kubeconfig":                            {1, "holds no mesh"},
		"explain pod":                           {2, "NAME is missing"},
		"explain pod a b":                       {2, `unexpected argument "b"`},
		"explain pod a":                         {1, "holds no mesh"},
		"explain deploy a":                      {1, "holds no mesh"},
		"explain cronjobs":                      {2, "NAME is missing"},
		"explain PDB a":                         {1, "holds no mesh"},
		"explain secret a":                      {1, "holds no mesh"},
		"explain HPA a":                         {1, "holds no mesh"},
		"explain quota a":                       {1, "holds no mesh"},
		"explain pv a":                          {1, "holds no mesh"},
		"explain pvc a":                         {1, "holds no mesh"},
		"explain podgroups a":                   {1, "holds no mesh"},
		"explain nodes a":                       {1, "holds no mesh"},
		"explain ns a":                          {1, "holds no mesh"},
		"simulate -f x":                         {1, "holds no mesh"},
		"simulate --snapshot x":                 {1, "keelson-scheduler is missing in"},
		"store snapshot x":                      {1, "holds no mesh"},
		"store restore x":                       {1, "holds no mesh"},
		"store verify x":                        {1, "keelson-apiserver is missing in"},
		"store migrate":                         {2, `--to: "" must be etcd or embedded`},
		"store migrate --to disk":               {2, `--to: "disk" must be etcd or embedded`},
		"store migrate extra":                   {2, `unexpected argument "extra"`},
		"store migrate --nosuch":                {2, "unknown flag: --nosuch"},
		"store migrate --to etcd --etcd-servers e:2379":         {2, `--etcd-servers: "e:2379" must be the client URL`},
		"store migrate --to etcd --etcd-cafile ca":              {2, "--etcd-servers is missing"},
		"store migrate --to etcd":                               {1, "holds no mesh"},
		"store migrate --to=embedded":                           {1, "holds no mesh"},
		"store snapshot x --etcd-servers y":                     {1, "keelson-apiserver is missing in"},
		"up --data-dir /proc/nosuch/mesh":                       {1, "--data-dir: mkdir /proc/nosuch"},
		"up --data-dir /dev/null":                               {1, "--data-dir: "},
		"kubeconfig --data-dir /tmp/" + strings.Repeat("x", 90): {1, "too long for the sockets"},
	} {
		t.Run(line, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := Execute(t.Context(), strings.Fields(line), &out, &errOut)
			said := errOut.String()
			if code != want.code || !strings.Contains(said, want.text) || strings.Count(said, "\n") != 1 ||
				!strings.HasPrefix(said, "keel: ") {
				t.Errorf("status %d, %q; want %d with %q on one line", code, said, want.code, want.text)
			}
		})
	}
}

func TestHelpListsTheCommands(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := Execute(t.Context(), nil, &out, &errOut); code != 0 {
		t.Fatal(errOut.String())
	}
	for _, command := range []string{"up", "down", "init", "join", "token", "reset", "kubeconfig", "status",
		"explain", "simulate", "store"} {
		if !strings.Contains(out.String(), "\n  "+command+" ") {
			t.Errorf("%s is not in the help", command)
		}
	}
}

// standInFor is a program beside keel that prints its arguments and its input, and fails where they say so.
func standInFor(t *testing.T, name string) {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(own), name)
	script := "#!/bin/sh\necho \"$@\"\ncat\n[ \"$2\" = fail ] && echo it failed >&2 && exit \"$3\"\nexit 0\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(program) })
}

// --data-dir is keel's, wherever it stands; the rest is the daemon's program's, as are its words and its status.
func TestArgumentsAreHandedOn(t *testing.T) {
	standInFor(t, "keelson-scheduler")
	standInFor(t, "keelson-apiserver")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "keel.json"), []byte(`{"version": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KEELSON_DATA_DIR", "/nosuch")
	for line, want := range map[string]struct {
		code      int
		out, text string
	}{
		"simulate -f - --snapshot s":                  {0, "simulate -f - --snapshot s\nin", ""},
		"simulate --data-dir /x --snapshot=s -o json": {0, "simulate --snapshot=s -o json\nin", ""},
		"--data-dir /x simulate --data-dir=/y -h":     {0, "simulate -h\nin", ""},
		"simulate fail 2 --snapshot s":                {2, "simulate fail 2 --snapshot s\nin", "keel: it failed\n"},
		"simulate fail 1 --snapshot s":                {1, "simulate fail 1 --snapshot s\nin", "keel: it failed\n"},
		"simulate --data-dir /proc/1/nosuch -f x": {1, "",
			"keel: --data-dir: /proc/1/nosuch holds no mesh: start one with keel up\n"},
		"--data-dir=/proc/1/nosuch simulate --save=out": {1, "",
			"keel: --data-dir: /proc/1/nosuch holds no mesh: start one with keel up\n"},
		"store verify f --data-dir /x":            {0, "store verify f\nin", ""},
		"store verify -o json --data-dir " + dir:  {0, "store verify -o json --data-dir=" + dir + "/apiserver\nin", ""},
		"store --data-dir=/x":                     {0, "store\nin", ""},
		"store snapshot --help":                   {0, "store snapshot --help\nin", ""},
		"store fail 2":                            {2, "store fail 2\nin", "keel: it failed\n"},
		"store snapshot f --etcd-servers=x":       {0, "store snapshot f --etcd-servers=x\nin", ""},
		"store snapshot --data-dir=" + dir + " f": {0, "store snapshot f --data-dir=" + dir + "/apiserver\nin", ""},
		"store restore f --replace --data-dir " + dir: {0, "store restore f --replace --data-dir=" + dir +
			"/apiserver\nin", ""},
		"store snapshot f": {1, "", "keel: --data-dir: /nosuch holds no mesh: start one with keel up\n"},
	} {
		var out, errOut bytes.Buffer
		root := newRoot()
		root.SetIn(strings.NewReader("in"))
		code := execute(t.Context(), root, strings.Fields(line), &out, &errOut)
		if code != want.code || out.String() != want.out || errOut.String() != want.text {
			t.Errorf("%q: status %d, %q, %q; want %+v", line, code, out.String(), errOut.String(), want)
		}
	}
}

// The commands of a mesh whose store is an etcd cluster ask that, and migrate records where the store is.
func TestStoreInACluster(t *testing.T) {
	standInFor(t, "keelson-apiserver")
	dir := t.TempDir()
	t.Setenv("KEELSON_DATA_DIR", dir)
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "keel.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const cluster = "--etcd-servers=http://e --etcd-cafile=/ca"
	const refusal = "the mesh's store is the etcd cluster at http://e, whose own tools"
	data, says := "--data-dir="+dir+"/apiserver", dir+"/keel.json says where the store is: keel up starts the "+
		"apiserver with it\n"
	embedded, external := `{"version": 1}`, `{"version": 1, "etcd": {"servers": ["http://e"], "caFile": "/ca"}}`
	for line, want := range map[string]struct {
		before    string
		code      int
		out, text string
		after     bool
	}{
		"snapshot f":       {external, 0, "store snapshot f " + cluster + "\nin", "", true},
		"verify -o json":   {external, 0, "store verify -o json " + cluster + "\nin", "", true},
		"verify -o json f": {external, 0, "store verify -o json f " + data + "\nin", "", true},
		"restore f":        {external, 1, "", refusal, true},
		"members":          {external, 1, "", refusal, true},
		"migrate --to embedded": {external, 0, "store migrate --to=embedded " + data + " " + cluster + "\nin" + says,
			"", false},
		"migrate --to etcd": {external, 0, "store migrate --to=etcd " + data + " " + cluster + "\nin" + says, "", true},
		"migrate --to etcd --etcd-servers http://e --etcd-cafile /ca": {embedded, 0,
			"store migrate --to=etcd " + data + " " + cluster + "\nin" + says, "", true},
	} {
		write(want.before)
		var out, errOut bytes.Buffer
		root := newRoot()
		root.SetIn(strings.NewReader("in"))
		code := execute(t.Context(), root, append([]string{"store"}, strings.Fields(line)...), &out, &errOut)
		if code != want.code || out.String() != want.out || !strings.Contains(errOut.String(), want.text) {
			t.Errorf("%q: status %d, %q, %q; want %+v", line, code, out.String(), errOut.String(), want)
		}
		recorded, err := os.ReadFile(filepath.Join(dir, "keel.json"))
		if err != nil || strings.Contains(string(recorded), `"http://e"`) != want.after {
			t.Errorf("%q: recorded is %s, %v", line, recorded, err)
		}
	}
}

// Problems of the machine are listed below one line, and the folder is not made.
func TestInitSaysAllThatIsMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mesh")
	var out, errOut bytes.Buffer
	args := []string{"init", "--data-dir", dir, "--programs", "/nosuch", "--images", "/nosuch"}
	code := Execute(t.Context(), args, &out, &errOut)
	for _, want := range []string{"keel: nothing was changed:\n  ", "\n  --programs: /nosuch lacks keelson-apiserver, ",
		"\n  --images: /nosuch holds no image archives"} {
		if code != 1 || !strings.Contains(errOut.String(), want) {
			t.Errorf("status %d, no %q in\n%s", code, want, errOut.String())
		}
	}
	if _, err := os.Stat(dir); err == nil || out.Len() > 0 {
		t.Errorf("it began: %v, %s", err, out.String())
	}
}

// keel status and the like find the mesh of this folder first, and the machine's where there is none.
func TestWhichMesh(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := (&global{}).either(); got != defaultDataDir && got != machineDataDir {
		t.Errorf("got %s", got)
	}
	if err := os.Mkdir(defaultDataDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(defaultDataDir, "keel.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ got, want string }{
		"of this folder": {(&global{}).either(), ".keelson"},
		"named":          {(&global{dataDir: "/x"}).either(), "/x"},
		"of keel up":     {(&global{}).own(), ".keelson"},
		"of keel init":   {(&global{}).machine(), "/var/lib/keelson"},
		"named for init": {(&global{dataDir: "/x"}).machine(), "/x"},
	} {
		if row.got != row.want {
			t.Errorf("%s: %s", name, row.got)
		}
	}
}

func TestDownIsHarmless(t *testing.T) {
	t.Setenv("KEELSON_DATA_DIR", t.TempDir())
	var out, errOut bytes.Buffer
	if code := Execute(t.Context(), []string{"down"}, &out, &errOut); code != 0 || !strings.Contains(out.String(),
		"nothing is up") {
		t.Errorf("status %d, %q, %q", code, out.String(), errOut.String())
	}
}
