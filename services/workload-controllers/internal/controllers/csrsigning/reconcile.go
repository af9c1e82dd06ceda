package csrsigning

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/signers"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller signs requests. It needs no gate: each write carries the resource version that it is about, and a
// certificate that is not written reaches no one.
type Controller struct {
	files  signers.Files
	writer *write.Writer
}

// steps are what a pass over a request consists of.
func (c *Controller) steps() *pass.Steps[*csr, Input, Plan] {
	return &pass.Steps[*csr, Input, Plan]{
		Reader:  c.writer.Client,
		New:     func() *csr { return &csr{} },
		Observe: c.observe,
		Decide:  Decide,
		Apply:   c.apply,
	}
}

// observe reads the authority only if there is a request to sign, and reads it each time: its files may be replaced.
func (c *Controller) observe(_ context.Context, r *csr) (Input, bool, error) {
	in := Input{Request: r, Longest: c.files.Longest, Now: time.Now()}
	if !isDue(r) {
		return in, r.DeletionTimestamp == nil, nil
	}
	authority, err := c.files.Load()
	if err != nil {
		return in, false, err
	}
	in.Authority = authority.Certificate
	in.Serial, err = signers.NewSerial()
	return in, err == nil, err
}

// apply carries the plan out.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	status := in.Request.Status.DeepCopy()
	switch {
	case plan.Expired:
		return fmt.Errorf("--cluster-signing-cert-file: the certificate is valid from %s to %s only",
			explain.At(in.Authority.NotBefore), explain.At(in.Authority.NotAfter))
	case plan.Fail != nil:
		status.Conditions = append(status.Conditions, *plan.Fail)
	case plan.Certificate != nil:
		authority, err := c.files.Load()
		if err != nil {
			return err
		}
		if !authority.Certificate.Equal(in.Authority) {
			return pass.ErrStale
		}
		if status.Certificate, err = authority.Sign(plan.Certificate, plan.Key); err != nil {
			return err
		}
	default:
		return nil
	}
	_, err := write.Status(ctx, c.writer, in.Request, *status,
		func(r *csr) *certificatesv1.CertificateSigningRequestStatus {
			return &r.Status
		})
	return err
}
