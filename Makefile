# `make` alone prints what there is to make.

FUZZTIME ?= 30s
PREFIX   ?= $(HOME)/.local
N        ?= 20

# The Claude Code CLI that `make demo` shows: the last one pinned.
DEMO_VERSION := $(shell awk '!/^\#/ && NF { v = $$1 } END { print v }' tools/cli/pins.txt)

STATICCHECK := .cache/bin/staticcheck
GOFUMPT     := .cache/bin/gofumpt

# The Go files of this module: not of hidden folders, of npm's, nor test data.
GO_FILES = $(shell find . -path './.*' -prune -o \( -name testdata -o -name node_modules \) -prune -o -name '*.go' -print)

# Begins a recipe: $$packages are all but the suite on the real CLI.
UNIT_PACKAGES = packages=$$(go list ./...) && packages=$$(echo "$$packages" | grep -v '^ocp/e2e')

# No test and no demo may reach a real account by way of the caller's environment.
unexport ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL CLAUDE_CODE_OAUTH_TOKEN

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build install release release-check cli clients programs demo test lint fmt tools test-unit test-cli fuzz fuzz-smoke bench probe probe-latest contract soak cover clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/ocp
	CGO_ENABLED=0 go build -trimpath -o bin/ocp ./cmd/ocp

install: build ## install ocp, its man page and completions below PREFIX (~/.local)
	mkdir -p $(PREFIX)/bin
	cp bin/ocp $(PREFIX)/bin/ocp.new && mv $(PREFIX)/bin/ocp.new $(PREFIX)/bin/ocp
	$(PREFIX)/bin/ocp man >bin/ocp.1 && scripts/share.sh $(PREFIX)/share bin/ocp.1

release: ## build the archives of a release into dist/ (VERSION, or what git says)
	scripts/release.sh

release-check: ## see that two builds of a release are the same
	scripts/release.sh --check

cli: ## install the pinned Claude Code CLIs into .cli/
	scripts/install-cli.sh

clients: ## install the JavaScript clients that the tests use
	scripts/install-clients.sh

programs: ## install the programs that some tests use, if they are missing: tmux, Chromium and others
	scripts/install-debian.sh tmux haproxy chromium zsh fish groff mandoc systemd-analyze

demo: build ## show one streamed answer of the real CLI; no account needed
	scripts/install-cli.sh $(DEMO_VERSION)
	bin/ocp demo --claude .cli/$(DEMO_VERSION)/claude

test: cli clients build lint test-unit fuzz-smoke test-cli ## all that CI runs

lint: $(STATICCHECK) ## check formatting (gofumpt), go vet, staticcheck
	@unformatted=$$($(GOFUMPT) -l $(GO_FILES)) || exit 1; \
	if [ -n "$$unformatted" ]; then \
		echo "not formatted; run make fmt:"; echo "$$unformatted"; exit 1; \
	fi
	go vet ./...
	$(STATICCHECK) -checks inherit,ST1000,ST1016 ./...

fmt: $(STATICCHECK) ## format every Go file
	@$(GOFUMPT) -w $(GO_FILES)

tools: $(STATICCHECK) ## build the linters into .cache/bin

# One build makes both linters; they are rebuilt when their versions change.
$(STATICCHECK): tools/go.mod tools/go.sum
	cd tools && CGO_ENABLED=0 go build -trimpath -o ../.cache/bin/ tool
	@touch $@

test-unit: export OCP_TEST_PROGRAMS = required
test-unit: programs ## run the tests that need no CLI
	$(UNIT_PACKAGES) && go test -race -shuffle=on $$packages

test-cli: cli clients programs ## run the tests on the real CLIs, every pinned version
	OCP_TEST_CLIS="$$(scripts/install-cli.sh --paths)" \
		go test -race -count=1 -parallel 4 -timeout 45m ./e2e/...
	OCP_TEST_CLIS="$$(scripts/install-cli.sh --paths)" \
		go test -race -count=1 -timeout 15m -run TestTypedTexts ./internal/claude
	OCP_TEST_CLIS="$$(scripts/install-cli.sh --paths)" \
		go test -race -count=1 -timeout 15m -run TestContract ./internal/probe

fuzz: ## fuzz every target for FUZZTIME (30s)
	scripts/fuzz.sh $(FUZZTIME)

fuzz-smoke: ## fuzz what others write for 30s each, all else for 5s
	scripts/fuzz.sh 30s 5s

bench: cli build ## measure where the time of a turn goes (N=20 turns each way and CLI)
	@for cli in $$(scripts/install-cli.sh --paths | tr , ' '); do \
		bin/ocp bench --n $(N) --claude "$${cli#*=}" || exit 1; echo; \
	done

# Ends a command line with a --claude for each pinned CLI.
PINNED = $$(scripts/install-cli.sh --paths | tr , '\n' | sed 's/^[^=]*=/--claude /')

probe: cli build ## prove on the pinned CLIs what ocp relies on
	bin/ocp probe $(PINNED)

probe-latest: build ## install the newest CLI and prove it there
	@version=$$(npm view @anthropic-ai/claude-code version) && \
		scripts/install-cli.sh "$$version" && bin/ocp probe --claude ".cli/$$version/claude"

contract: cli build programs ## make docs/contract.md anew
	bin/ocp probe --markdown $(PINNED) >.cache/contract.md
	mv .cache/contract.md docs/contract.md

soak: cli clients programs ## run the tests on the real CLIs with the long ones, and the load test
	OCP_SOAK=1 OCP_TEST_CLIS="$$(scripts/install-cli.sh --paths)" \
		go test -race -count=1 -timeout 3h -v ./e2e/...
	OCP_TEST_TERMINAL=tmux OCP_TEST_CLIS="$$(scripts/install-cli.sh --paths)" \
		go test -race -count=1 -timeout 3h -v ./e2e/...
	OCP_SOAK=1 OCP_TEST_CLIS="$$(scripts/install-cli.sh --paths)" \
		go test -race -count=1 -timeout 2h -v -run 'TestChaos|TestTypedTexts' ./internal/claude
	OCP_SOAK=1 go test -count=1 -timeout 1h -v -run 'TestLoad|TestDay' ./cmd/ocp

cover: programs ## measure the coverage of the tests that need no CLI
	@mkdir -p .cache
	$(UNIT_PACKAGES) && \
		go test -coverprofile=.cache/cover.out -coverpkg=./internal/...,./cmd/... $$packages
	@go tool cover -func=.cache/cover.out | tail -1
	@go tool cover -html=.cache/cover.out -o .cache/cover.html && echo "by line: .cache/cover.html"

clean: ## remove what was built (the CLIs in .cli/ stay)
	rm -rf bin dist .cache
