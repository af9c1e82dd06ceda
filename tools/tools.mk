# Everything that is not ours, built from source at pinned versions. Each folder of tools/pins is a module of its own, outside
# the workspace, so that go.sum checks every byte and no version leaks into the product. A stamp per tool makes a second
# `make` free.

PINS   := $(ROOT)/tools/pins
STAMPS := $(BIN)/.stamps

containerd_version = $(call pinned,containerd,github.com/containerd/containerd/v2)
kubectl_version    = $(call pinned,kubectl,k8s.io/kubectl)
coredns_version    = $(call pinned,coredns,github.com/coredns/coredns)
helm_version       = $(call pinned,helm,helm.sh/helm/v3)
# A kubectl whose stamp is younger than its server's by more than one minor warns; the library modules are v0.X of v1.X.
kubernetes_version = $(patsubst v0.%,v1.%,$(kubectl_version))
kubernetes_minor   = $(word 2,$(subst ., ,$(kubernetes_version)))

# pinned PIN,MODULE: the version of MODULE that the pin's go.mod names.
pinned = $(shell sed -n 's|^[[:space:]]*\(require \)\{0,1\}$(2) \(v[^ ]*\).*|\2|p' $(PINS)/$(1)/go.mod)

# pin_build PIN,PACKAGES,FOLDER,FLAGS,NOTE
define pin_build
	@echo "==> building $(5)"
	@mkdir -p $(STAMPS) $(3)
	@cd $(PINS)/$(1) && GOWORK=off $(GO) build $(4) -o $(3)/ $(2)
	@touch $@
endef

pin_files = $(PINS)/$(1)/go.mod $(PINS)/$(1)/go.sum $(ROOT)/tools/tools.mk

.PHONY: tools runtime
runtime: $(STAMPS)/containerd $(STAMPS)/runc $(STAMPS)/cni
tools: runtime $(STAMPS)/kubectl

CONTAINERD := github.com/containerd/containerd/v2
$(STAMPS)/containerd: $(call pin_files,containerd)
	$(call pin_build,containerd,$(CONTAINERD)/cmd/containerd $(CONTAINERD)/cmd/containerd-shim-runc-v2 $(CONTAINERD)/cmd/ctr,$(BIN),-tags "no_btrfs no_zfs no_aufs no_devmapper" -ldflags "-s -w -X $(CONTAINERD)/version.Version=$(containerd_version)",containerd $(containerd_version) (runs the containers; the longest part of a first build))

# runc compiles seccomp profiles with libseccomp where its headers are installed, and else with our own compiler (tools/pins/runc):
# its file takes the place, in a copy of the verified source, of the one that refuses profiles.
RUNC_TAGS   := $(shell pkg-config --exists libseccomp 2>/dev/null && echo seccomp)
RUNC_SOURCE := $(STAMPS)/runc-source
$(STAMPS)/runc.mod: $(call pin_files,runc) $(PINS)/runc/overlay/seccomp.go
	@mkdir -p $(STAMPS)
	@rm -rf $(RUNC_SOURCE)
	@cd $(PINS)/runc && GOWORK=off $(GO) mod download github.com/opencontainers/runc && \
	  cp -r "$$(GOWORK=off $(GO) list -m -f '{{.Dir}}' github.com/opencontainers/runc)" $(RUNC_SOURCE)
	@chmod -R u+w $(RUNC_SOURCE)
	@cp $(PINS)/runc/overlay/seccomp.go $(RUNC_SOURCE)/libcontainer/seccomp/seccomp_unsupported.go
	@cp $(PINS)/runc/go.sum $(STAMPS)/runc.sum
	@{ cat $(PINS)/runc/go.mod; echo 'replace github.com/opencontainers/runc => $(RUNC_SOURCE)'; } >$@
$(STAMPS)/runc: $(STAMPS)/runc.mod $(wildcard $(PINS)/runc/filter/*.go)
	$(call pin_build,runc,github.com/opencontainers/runc,$(BIN),-modfile $(STAMPS)/runc.mod -tags "$(RUNC_TAGS)" -ldflags "-s -w",runc $(call pinned,runc,github.com/opencontainers/runc))

CNI := github.com/containernetworking/plugins
$(STAMPS)/cni: $(call pin_files,cni)
	$(call pin_build,cni,$(CNI)/plugins/main/bridge $(CNI)/plugins/main/loopback $(CNI)/plugins/ipam/host-local,$(BIN)/cni,-ldflags "-s -w -X $(CNI)/pkg/utils/buildversion.BuildVersion=$(call pinned,cni,$(CNI))",the CNI plugins $(call pinned,cni,$(CNI)))

VERSION_PKG := k8s.io/component-base/version
$(STAMPS)/kubectl: $(call pin_files,kubectl) $(PINS)/kubectl/main.go
	$(call pin_build,kubectl,.,$(BIN),-ldflags "-s -w -X $(VERSION_PKG).gitVersion=$(kubernetes_version) -X $(VERSION_PKG).gitMajor=1 -X $(VERSION_PKG).gitMinor=$(kubernetes_minor)",kubectl $(kubernetes_version))

HELM := helm.sh/helm/v3
# The last two are what charts see as the Kubernetes version where no server is asked.
$(STAMPS)/helm: $(call pin_files,helm)
	$(call pin_build,helm,$(HELM)/cmd/helm,$(BIN),-ldflags "-s -w -X $(HELM)/internal/version.version=$(helm_version) -X $(HELM)/pkg/chartutil.k8sVersionMinor=$(kubernetes_minor) -X $(HELM)/pkg/lint/rules.k8sVersionMinor=$(kubernetes_minor)",helm $(helm_version) (for the chart's tests))

# Built as the daemons are, with C, so that it shares their compile cache; its image gets the libraries that it names.
$(STAMPS)/coredns: $(call pin_files,coredns) $(PINS)/coredns/main.go
	$(call pin_build,coredns,.,$(BIN),-ldflags "-s -w",CoreDNS $(coredns_version))

# What three projects publish of their kinds: definitions, and examples of objects. No code of theirs is built.
PUBLISHED := $(BIN)/published
# publish PROJECT,MODULE,DEFINITIONS,EXAMPLES
publish = dir=$$($(GO) list -m -f '{{.Dir}}' $(2)) && mkdir -p $(PUBLISHED)/$(1)/definitions $(PUBLISHED)/$(1)/examples && \
  (cd $$dir && cp --no-preserve=mode $(3) $(PUBLISHED)/$(1)/definitions && cp --no-preserve=mode $(4) $(PUBLISHED)/$(1)/examples)
$(STAMPS)/published: $(call pin_files,published)
	@echo "==> getting the published definitions of Argo CD, cert-manager and the Prometheus operator"
	@mkdir -p $(STAMPS); rm -rf $(PUBLISHED); cd $(PINS)/published && export GOWORK=off && $(GO) mod download && \
	$(call publish,argo-cd,github.com/argoproj/argo-cd/v3,manifests/crds/*-crd.yaml,$(addprefix docs/operator-manual/,application.yaml project.yaml)) && \
	$(call publish,cert-manager,github.com/cert-manager/cert-manager,deploy/crds/*.yaml,test/fixtures/cert-manager-resources.yaml) && \
	$(call publish,prometheus-operator,github.com/prometheus-operator/prometheus-operator,example/prometheus-operator-crd-full/*.yaml,$(addprefix example/user-guides/,alerting/alertmanager-config-example.yaml alerting/alertmanager-example.yaml alerting/prometheus-example-rules.yaml getting-started/example-app-pod-monitor.yaml getting-started/example-app-service-monitor.yaml getting-started/prometheus.yaml))
	@touch $@

$(STAMPS)/golangci-lint: $(call pin_files,golangci-lint)
	$(call pin_build,golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(BIN),-ldflags "-s -w",golangci-lint $(call pinned,golangci-lint,github.com/golangci/golangci-lint/v2))

$(STAMPS)/gotestsum: $(call pin_files,gotestsum)
	$(call pin_build,gotestsum,gotest.tools/gotestsum,$(BIN),-ldflags "-s -w",gotestsum $(call pinned,gotestsum,gotest.tools/gotestsum))

$(STAMPS)/gremlins: $(call pin_files,gremlins)
	$(call pin_build,gremlins,github.com/go-gremlins/gremlins/cmd/gremlins,$(BIN),-ldflags "-s -w",gremlins $(call pinned,gremlins,github.com/go-gremlins/gremlins))

$(STAMPS)/codegen: $(call pin_files,codegen)
	$(call pin_build,codegen,github.com/bufbuild/buf/cmd/buf google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc k8s.io/kube-openapi/cmd/openapi-gen,$(BIN)/codegen,-ldflags "-s -w",the code generators)

# The machines of test/vm need programs of Debian's, and a Debian to run, which the tests get themselves (debootstrap) and keep in
# the user's cache. Nothing else needs them, so a machine without apt only skips those tests.
VM_PACKAGES := qemu-system-x86 debootstrap e2fsprogs
.PHONY: vm-tools
vm-tools:
	@mkdir -p $(STAMPS); for program in qemu-system-x86_64 debootstrap mke2fs debugfs; do \
	  PATH=$$PATH:/usr/sbin:/sbin command -v $$program >/dev/null || missing=1; done; \
	if [ -n "$$missing" ]; then echo "==> installing $(VM_PACKAGES)"; \
	  { apt-get update; DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(VM_PACKAGES); } \
	    >$(STAMPS)/vm-tools.log 2>&1 || echo "    they cannot be had (see $(STAMPS)/vm-tools.log): tests on machines will be skipped"; fi

# The console is looked at in Debian's Chromium; a machine without apt only skips that test.
BROWSER_PACKAGES := chromium
.PHONY: browser
browser:
	@mkdir -p $(STAMPS); if ! command -v chromium >/dev/null; then echo "==> installing $(BROWSER_PACKAGES)"; \
	  { apt-get update; DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(BROWSER_PACKAGES); } \
	    >$(STAMPS)/browser.log 2>&1 || echo "    it cannot be had (see $(STAMPS)/browser.log): the console's test in a browser will be skipped"; fi

.PHONY: golangci-lint
golangci-lint: $(STAMPS)/golangci-lint
