package legacytoken_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/legacytoken"
	"keelson.dev/services/apiserver/internal/servertest"
)

const bundle = "-----BEGIN CERTIFICATE-----\n"

// place is a namespace of a test on a server.
type place struct {
	t *testing.T
	*servertest.Server
	namespace string
}

func in(t *testing.T, s *servertest.Server, namespace string) *place {
	return &place{t, s, s.Namespace(t, namespace)}
}

// must is for what a test is not about.
func must[O any](t *testing.T) func(O, error) O {
	return func(object O, err error) O {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
}

// account makes an account that lists these Secrets.
func (p *place) account(name string, secrets ...string) {
	p.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, secret := range secrets {
		account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: secret})
	}
	must[*corev1.ServiceAccount](p.t)(p.Client.CoreV1().ServiceAccounts(p.namespace).Create(p.t.Context(), account,
		metav1.CreateOptions{}))
}

// secret makes a Secret for the account.
func (p *place) secret(name, account string, kind corev1.SecretType) {
	p.t.Helper()
	must[*corev1.Secret](p.t)(p.Client.CoreV1().Secrets(p.namespace).Create(p.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type: kind,
	}, metav1.CreateOptions{}))
}

func (p *place) get(name string) (*corev1.Secret, error) {
	return p.Client.CoreV1().Secrets(p.namespace).Get(p.t.Context(), name, metav1.GetOptions{})
}

// filled waits until the Secret holds a token and these other keys, and returns the token.
func (p *place) filled(name string, keys map[string]string) string {
	p.t.Helper()
	var token string
	servertest.Eventually(p.t, "the Secret "+name, func(context.Context) string {
		s, err := p.get(name)
		if err != nil {
			return err.Error()
		}
		for key, want := range keys {
			if got := string(s.Data[key]); got != want {
				return fmt.Sprintf("%s is %q, want %q", key, got, want)
			}
		}
		if token = string(s.Data["token"]); len(token) < 100 {
			return fmt.Sprintf("the token is %q", token)
		}
		return ""
	})
	return token
}

func (p *place) gone(name string) {
	p.t.Helper()
	servertest.Eventually(p.t, "the Secret "+name, func(context.Context) string {
		if _, err := p.get(name); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("is still there: %v", err)
		}
		return ""
	})
}

// asked is what the server says to the token's bearer, who has no rights, and what it warns him of.
func (p *place) asked(token string) (warned []string, err error) {
	var warnings warnings
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: "https://" + p.Address(), BearerToken: token,
		TLSClientConfig: restclient.TLSClientConfig{Insecure: true}, QPS: -1, WarningHandler: &warnings})
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = client.CoreV1().ConfigMaps(p.namespace).List(p.t.Context(), metav1.ListOptions{})
	return warnings, err
}

// believed wants the bearer to be the account bot, and that many warnings.
func (p *place) believed(token string, warnings int) {
	p.t.Helper()
	warned, err := p.asked(token)
	user := fmt.Sprintf("User %q cannot", "system:serviceaccount:"+p.namespace+":bot")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), user) || len(warned) != warnings {
		p.t.Errorf("the bearer of a token is told %v; warned of %q", err, warned)
	}
}

type warnings []string

// HandleWarningHeader implements restclient.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

// refused waits until every server refuses the token: one that was used is believed without a look for ten seconds.
func (p *place) refused(token string) {
	p.t.Helper()
	servertest.Eventually(p.t, "a token that is not valid any more", func(context.Context) string {
		if _, err := p.asked(token); !apierrors.IsUnauthorized(err) {
			return fmt.Sprintf("its bearer is told %v", err)
		}
		return ""
	})
}

func publish(t *testing.T, s *servertest.Server) {
	t.Helper()
	must[*corev1.ConfigMap](t)(s.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"},
			Data: map[string]string{"ca.crt": bundle}}, metav1.CreateOptions{}))
}

// A Secret that a user makes for an account gets a token, by which its bearer is the account for as long as both are
// there. The Keeper repairs damage to it.
func TestATokenLastsAsLongAsSecretAndAccount(t *testing.T) {
	p := in(t, servertest.Start(t), "team")
	p.account("bot")
	p.secret("robot", "bot", corev1.SecretTypeServiceAccountToken)
	p.secret("foreign", "bot", "example.com/token")
	p.secret("orphan", "nobody", corev1.SecretTypeServiceAccountToken)
	p.secret("stranger", "nobody", "example.com/token")
	p.filled("robot", map[string]string{"namespace": "team", "ca.crt": ""})
	publish(t, p.Server)
	whole := map[string]string{"namespace": "team", "ca.crt": bundle}
	token := p.filled("robot", whole)
	p.gone("orphan")

	p.believed(token, 0)
	s := must[*corev1.Secret](t)(p.get("robot"))
	if got := s.Labels["kubernetes.io/legacy-token-last-used"]; got != time.Now().UTC().Format(time.DateOnly) {
		t.Errorf("last used %q", got)
	}
	const spoil = `{"data":{"token":"eA==","namespace":"eA==","ca.crt":null,"mine":"eA=="}}`
	must[*corev1.Secret](t)(p.Client.CoreV1().Secrets("team").Patch(t.Context(), "robot", types.MergePatchType,
		[]byte(spoil), metav1.PatchOptions{}))
	whole["mine"] = "x"
	mended := p.filled("robot", whole)
	if mended != token { // the signature is another one each time
		p.refused(token)
	}
	if err := p.Client.CoreV1().ServiceAccounts("team").Delete(t.Context(), "bot", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.gone("robot")
	p.refused(mended)
	for _, name := range []string{"foreign", "stranger"} {
		if s, err := p.get(name); err != nil || len(s.Data) > 0 {
			t.Errorf("%s, which is of another type, has %v, %v", name, s.Data, err)
		}
	}
}

// Who deletes a Secret finds it off its account's list, and one that was made for the account is warned about.
func TestAnAccountListsNoSecretThatIsGone(t *testing.T) {
	p := in(t, servertest.Start(t), "team")
	p.account("bot", "other", "robot")
	p.secret("robot", "bot", corev1.SecretTypeServiceAccountToken)
	token := p.filled("robot", nil)
	p.believed(token, 1)
	if err := p.Client.CoreV1().Secrets("team").Delete(t.Context(), "robot", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the account's list", func(ctx context.Context) string {
		account, err := p.Client.CoreV1().ServiceAccounts("team").Get(ctx, "bot", metav1.GetOptions{})
		if err != nil || len(account.Secrets) != 1 || account.Secrets[0].Name != "other" {
			return fmt.Sprintf("%v, %v", account.Secrets, err)
		}
		return ""
	})
}

// A write that fails, or whose answer is lost, is made up for.
func TestAFailedWriteIsTriedAgain(t *testing.T) {
	p := in(t, servertest.Start(t), "team")
	for name, act := range map[string]func(){
		"update": func() {
			p.account("bot", "robot")
			p.secret("robot", "bot", corev1.SecretTypeServiceAccountToken)
			p.filled("robot", map[string]string{"namespace": "team"})
		},
		"delete": func() {
			p.secret("orphan", "nobody", corev1.SecretTypeServiceAccountToken)
			p.gone("orphan")
		},
	} {
		for _, at := range []string{"before", "after"} {
			point := "apiserver/legacytoken." + name + "." + at
			if err := failpoint.Arm(point, "2*error(the disk is full)"); err != nil {
				t.Fatal(err)
			}
			act()
			failpoint.Disarm(point)
			// What is left goes with its account.
			_ = p.Client.CoreV1().ServiceAccounts("team").Delete(t.Context(), "bot", metav1.DeleteOptions{})
			p.gone("robot")
		}
	}
}

// Two apiservers that both look after a Secret write it once, and each believes what the other one signed.
func TestTwoServersFillASecretOnce(t *testing.T) {
	shared := servertest.SharedStore(t)
	key := ""
	external := func(c *inproc.Config) {
		shared(c)
		if key == "" {
			key = c.ServiceAccountSigningKeyFile
		}
		c.ServiceAccountSigningKeyFile = key
	}
	servers := []*servertest.Server{servertest.Start(t, external), servertest.Start(t, external)}
	publish(t, servers[0])
	p := in(t, servers[0], "team")
	changes := must[watch.Interface](t)(p.Client.CoreV1().Secrets("team").Watch(t.Context(), metav1.ListOptions{}))
	defer changes.Stop()
	p.account("bot")
	const count = 20
	whole := map[string]string{"namespace": "team", "ca.crt": bundle}
	for i := range count {
		p.Server = servers[i%2]
		p.secret(fmt.Sprint("robot-", i), "bot", corev1.SecretTypeServiceAccountToken)
	}
	for i := range count {
		token := p.filled(fmt.Sprint("robot-", i), whole)
		for _, s := range servers {
			p.Server = s
			p.believed(token, 0)
		}
	}
	p.secret("last", "nobody", corev1.SecretTypeServiceAccountToken)
	p.gone("last")
	tokens := map[string][]string{}
	for event := range changes.ResultChan() {
		s := event.Object.(*corev1.Secret)
		if s.Name == "last" && event.Type == watch.Deleted {
			break
		}
		if token := string(s.Data["token"]); token != "" && !slices.Contains(tokens[s.Name], token) {
			tokens[s.Name] = append(tokens[s.Name], token)
		}
	}
	if len(tokens) != count {
		t.Errorf("%d Secrets have been seen with a token", len(tokens))
	}
	for name, all := range tokens {
		if len(all) != 1 {
			t.Errorf("%s has held %d tokens", name, len(all))
		}
	}
}

// keepAt runs a Keeper whose clock is ahead until the test calls stop.
func (p *place) keepAt(ahead time.Duration) (stop func()) {
	p.t.Helper()
	accounts := informers.NewSharedInformerFactory(p.Client, 0).Core().V1().ServiceAccounts().Informer()
	keeper, err := legacytoken.New(legacytoken.Config{Client: p.Client, Accounts: accounts,
		CleanUpPeriod: 365 * 24 * time.Hour, Log: zap.NewNop(),
		Now: func() time.Time { return time.Now().Add(ahead) }})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan struct{})
	go accounts.RunWithContext(ctx)
	go func() { defer close(ended); keeper.Run(ctx) }()
	return func() { cancel(); <-ended }
}

// A token that was made for its account and is not used is refused after a year, and gone after another one.
func TestUnusedTokensGo(t *testing.T) {
	const day = 24 * time.Hour
	p := in(t, servertest.Start(t), "team")
	p.account("bot", "unused", "mounted")
	tokens := map[string]string{}
	for _, name := range []string{"unused", "mounted", "manual"} {
		p.secret(name, "bot", corev1.SecretTypeServiceAccountToken)
		tokens[name] = p.filled(name, nil)
	}
	mounted := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}
	must[*corev1.Pod](t)(p.Client.CoreV1().Pods("team").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: mounted}}},
	}, metav1.CreateOptions{}))

	stop := p.keepAt(400 * day)
	since := ""
	servertest.Eventually(t, "the unused Secret", func(context.Context) string {
		s, err := p.get("unused")
		if err != nil {
			return err.Error()
		}
		if since = s.Labels["kubernetes.io/legacy-token-invalid-since"]; since == "" {
			return "is not marked"
		}
		return ""
	})
	stop()
	if want := time.Now().Add(400 * day).UTC().Format(time.DateOnly); since != want {
		t.Errorf("marked invalid since %s, want %s", since, want)
	}
	p.refused(tokens["unused"])
	// A use, though refused, is one: take it back, as if the token had not been tried.
	const unlabel = `{"metadata":{"labels":{"kubernetes.io/legacy-token-last-used":null}}}`
	must[*corev1.Secret](t)(p.Client.CoreV1().Secrets("team").Patch(t.Context(), "unused", types.MergePatchType,
		[]byte(unlabel), metav1.PatchOptions{}))
	stop = p.keepAt(800 * day)
	p.gone("unused")
	stop()
	for _, name := range []string{"mounted", "manual"} {
		if s, err := p.get(name); err != nil || len(s.Labels) > 0 {
			t.Errorf("%s has %v, %v", name, s.Labels, err)
		}
		warned, err := p.asked(tokens[name])
		if !apierrors.IsForbidden(err) || (len(warned) > 0) != (name == "mounted") {
			t.Errorf("the bearer of the token of %s is told %v; warned of %q", name, err, warned)
		}
	}
}
