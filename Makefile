# Everything here is a line or two of ordinary Go commands; make only remembers
# them. .ci/run is what a change must pass.

# The modules that build without cgo. go ./... has the library alone.
MODULES := ./... ./agent/... ./contrib/arbiter/... ./contrib/groupcache/... ./contrib/grpc/... ./examples/... ./lab/... ./otel/... ./prom/...

FUZZTIME ?= 100000x
BENCH ?= .

.DEFAULT_GOAL := help

# The main targets, which have ## before their description, by group. Others have #:
GROUPS := Build: build install sql bindings packages site; Check a change: ci test lint fmt api fuzz; Test at length: full soak simulate schedules verify mutants faults sqlfuzz torch-test cluster kubernetes; Measure: bench figures

.PHONY: help
help: ## list the main targets; ALL=1 lists all
	@awk -F ':.*#[#:] ' -v all='$(ALL)' -v groups='$(GROUPS)' ' \
		/^[a-z-]+:.*## / || all && /^[a-z-]+:.*#: / { text[$$1] = $$2; if (/#: /) more[++n] = $$1 } \
		END { \
			count = split(groups, g, "; "); \
			for (i = 1; i <= count; i++) { \
				split(g[i], part, ": "); print part[1] ":"; \
				names = split(part[2], name, " "); \
				for (j = 1; j <= names; j++) printf "  %-14s %s\n", name[j], text[name[j]]; \
			} \
			if (n) print "More:"; \
			for (j = 1; j <= n; j++) printf "  %-14s %s\n", more[j], text[more[j]]; \
		}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/pleach and bin/pleach-lab, without cgo
	CGO_ENABLED=0 go build -trimpath -o bin/ ./agent/cmd/pleach ./lab/cmd/pleach-lab

.PHONY: install
install: ## install pleach and pleach-lab where go install puts commands
	CGO_ENABLED=0 go install -trimpath ./agent/cmd/pleach ./lab/cmd/pleach-lab

.PHONY: test
test: ## run all tests with the race detector, in random order
	go test -race -shuffle=on $(MODULES)

.PHONY: lint
lint: ## check formatting, go vet and staticcheck
	.ci/run lint

.PHONY: fmt
fmt: ## format all Go files
	GOWORK=off go tool -modfile=tools/go.mod gofumpt -w .

.PHONY: bench
bench: ## run the benchmarks that match BENCH (default: all)
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(MODULES)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME, a time or a number of inputs (default: 100000x)
	FUZZTIME=$(FUZZTIME) .ci/run fuzz

INPUTS ?= 10000000

.PHONY: fuzz-sessions
fuzz-sessions: #: send INPUTS random inputs (default: 10 million) over each kind of real session, from SEED on; CASE=peer for some kinds
	PLEACH_INPUTS=$(INPUTS) PLEACH_SEED=$(or $(SEED),1) PLEACH_CASE='$(CASE)' go test -count=1 -timeout 0 -run SecuritySessions -v ./agent/test/security

.PHONY: full
full: ## run the full-size tests: up to two hours
	PLEACH_FULL=1 go test -timeout 120m ./lab/test/broadcast ./logp/... ./lab/experiments/... ./samplesort ./collective

SEEDS ?= 100
KIND ?= UnderKilling

.PHONY: soak
soak: ## deliver with SEEDS seeds (default: 100), KIND=UnderKilling, OnBadNetwork, BetweenHosts or Fleet
	go test -c -o bin/delivery.test ./internal/test/group
	PLEACH_SEEDS=$(SEEDS) bin/delivery.test -test.timeout 0 -test.run '^TestDelivery$(KIND)$$'

.PHONY: logs
logs: #: kill an agent for 30 s under load in 20 groups: listeners miss nothing
	PLEACH_FULL=1 go test -count=1 -timeout 30m -parallel 5 -run '^TestListenAcrossKilledAgent$$' -v ./agent/cmd/pleach

.PHONY: ringkills
ringkills: #: kill 1,000 processes that send through shared memory, and 1,000 of jobs that share it
	PLEACH_FULL=1 go test -count=1 -timeout 60m -run '^TestSharedMemoryOfKilledProcesses$$' -v ./internal/driver/tcp
	PLEACH_FULL=1 go test -count=1 -timeout 60m -run '^TestProcessesAreKilled$$' -v ./collective

.PHONY: sql
sql: ## build bin/pleach-sql: with cgo, some minutes the first time
	cd sql && CGO_ENABLED=1 go build -trimpath -tags duckdb_arrow -o ../bin/pleach-sql ./cmd/pleach-sql

.PHONY: tpch
tpch: sql #: run the queries of TPC-H at scale factor 1 beside one DuckDB, kill a process in every stage, and write the record
	go run ./lab/figures/measure sql

.PHONY: sqlfuzz
QUERIES ?= 100000
SEED ?= 1
sqlfuzz: ## compare QUERIES random queries over random tables, from SEED on, with one DuckDB
	cd sql && CGO_ENABLED=1 QUERIES=$(QUERIES) SEED=$(SEED) go test -count=1 -timeout 6h -tags duckdb_arrow -run '^TestRandomQueries$$' -v ./internal/difftest

.PHONY: sqldeaths
sqldeaths: #: run the queries of TPC-H at scale factor 1 and kill a process at the beginning of every phase
	cd sql && CGO_ENABLED=1 PLEACH_FULL=1 go test -count=1 -timeout 60m -tags duckdb_arrow -run '^TestKilled$$' -v ./cmd/pleach-sql

LIBPLEACH ?= bin/libpleach

.PHONY: libpleach
libpleach: #: build the C library, its header and its pkg-config file into LIBPLEACH (default: bin/libpleach)
	mkdir -p '$(LIBPLEACH)'
	cd bindings/c && CGO_ENABLED=1 go build -buildmode=c-shared -o '$(abspath $(LIBPLEACH))/libpleach.so' \
		-ldflags='-s -w -extldflags=-Wl,-soname,libpleach.so.0,--version-script=$(abspath bindings/c/libpleach.map)' .
	rm '$(LIBPLEACH)/libpleach.h'
	ln -sf libpleach.so '$(LIBPLEACH)/libpleach.so.0'
	cp bindings/c/pleach.h '$(LIBPLEACH)'
	sed 's|@DIR@|$(abspath $(LIBPLEACH))|; s|@VERSION@|$(shell sed -n 's/^.define PLEACH_VERSION "\(.*\)"/\1/p' bindings/c/pleach.h)|' bindings/c/libpleach.pc.in >'$(LIBPLEACH)/libpleach.pc'

.PHONY: libpleach-deb
libpleach-deb: libpleach #: build the packages libpleach0 and libpleach-dev for Debian into bin/deb
	bindings/c/deb.sh '$(LIBPLEACH)' bin/deb

# Debian's interpreter, which has Debian's numpy, pytest and torch.
PYTHON ?= /usr/bin/python3
export PLEACH_LIBRARY ?= $(abspath $(LIBPLEACH))/libpleach.so

.PHONY: bindings
bindings: libpleach ## build the C library, and the wheels and the sdist of the Python packages into bin/python
	$(PYTHON) bindings/python/backend.py bin/python
	$(PYTHON) bindings/python/backend.py bin/python agent

# Debian packages that are missing are installed, by root.
debian = dpkg -s $(1) >/dev/null 2>&1 || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(1); }

.PHONY: bindings-test
bindings-test: bindings #: test programs in C and Python under kills; needs gcc, pkg-config, python3-numpy and python3-pytest
	$(call debian,gcc pkg-config python3-numpy python3-pytest)
	CGO_ENABLED=0 go build -o bin/ ./agent/cmd/pleach
	cd bindings/c && CGO_ENABLED=0 go test ./tests
	PYTHONPATH=bindings/python $(PYTHON) -m pytest -q -p no:cacheprovider bindings/python/tests --ignore bindings/python/tests/test_torch.py --ignore bindings/python/tests/test_agent_torch.py --ignore bindings/python/tests/test_elastic.py

.PHONY: torch-test
torch-test: bindings ## train with torch.distributed under kills; needs python3-torch (400 MB) and python3-pytest
	$(call debian,python3-torch python3-numpy python3-pytest)
	CGO_ENABLED=0 go build -o bin/ ./agent/cmd/pleach
	PYTHONPATH=bindings/python $(PYTHON) -m pytest -q -p no:cacheprovider bindings/python/tests/test_torch.py bindings/python/tests/test_agent_torch.py bindings/python/tests/test_elastic.py

.PHONY: torch-kills
torch-kills: bindings #: kill processes in calls of torch.distributed, with SEEDS seeds (default: 100): no call hangs or differs between ranks
	$(call debian,python3-torch python3-numpy python3-pytest)
	CGO_ENABLED=0 go build -o bin/ ./agent/cmd/pleach
	PYTHONPATH=bindings/python PLEACH_SEEDS=$(SEEDS) $(PYTHON) -m pytest -v -p no:cacheprovider bindings/python/tests/test_torch.py -k at_random

.PHONY: bindings-bench
bindings-bench: bindings #: measure Allreduce from Go, C and Python, and a training that loses a process, beside mpi4py and Gloo where Debian's are installed
	CGO_ENABLED=0 go build -o bin/ ./agent/cmd/pleach
	$(PYTHON) bindings/python/bench.py

.PHONY: bindings-types
bindings-types: #: check the types of the Python packages; needs mypy, python3-numpy and python3-torch
	$(call debian,mypy python3-numpy python3-torch)
	cd bindings/python && mypy --cache-dir=/dev/null --python-version 3.9 pleach
	cd bindings/python && mypy --strict --follow-imports=silent --cache-dir=/dev/null --python-version 3.9 pleach/agent pleach/elastic

.PHONY: bindings-api
bindings-api: #: record pleach.h after a change of it on purpose
	cd bindings/c && PLEACH_RECORD_API=1 go test -count=1 -run Symbols ./tests

PART ?=

.PHONY: figures
figures: ## measure what README and docs quote, and write records and pages; PART=silent or silent.peers for one, PART=pages for none
	go run ./lab/figures/measure $(PART)

.PHONY: peers
peers: #: measure Pleach beside NATS, gRPC, memberlist, serf and gossipsub
	cd lab/peers && go run . --members 32,128 --rounds 200

.PHONY: convergence
convergence: #: kill members of groups by Pleach, memberlist and serf, in turns: some minutes
	cd lab/peers && go run ./convergence --members 47 --kills 10 --turns 2

.PHONY: serf
serf: #: run 50 agents each of Pleach and serf: events, deaths, memory, idle processors; two minutes
	cd lab/peers && go run ./agents --members 50 --events 20 --kills 3 --idle 20s

.PHONY: grpc
grpc: #: restart, kill and stop gRPC servers under 2,000 requests a second, by views and by a list of addresses; two minutes
	PLEACH_FULL=1 go test -count=1 -timeout 10m -v ./examples/grpc

MIRROR ?= $(shell apt-get indextargets --format '$$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | head -n 1)

.PHONY: ulfmroot
ulfmroot: #: make the root directory DIR with Open MPI and ULFM (Debian 13, 1.1 GB) from MIRROR (default: that of apt here); needs root and debootstrap
	@test -n '$(DIR)' || { echo 'name a directory that does not exist: make ulfmroot DIR=/srv/trixie' >&2; exit 2; }
	@test -n '$(MIRROR)' || { echo 'apt has no mirror of Debian here: name one by MIRROR=' >&2; exit 2; }
	debootstrap --variant=minbase trixie '$(DIR)' '$(MIRROR)'
	chroot '$(DIR)' env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openmpi-bin libopenmpi-dev gcc libc6-dev

.PHONY: ulfm
ulfm: #: kill members of groups of Pleach and ranks by ULFM, in turns; DIR is what ulfmroot made, or empty: Open MPI in PATH
	for n in 4 8 16; do go run ./lab/cmd/pleach-lab bench stabilization --members $$n --kills 10 --compare ulfm --ulfm-root '$(DIR)' || exit; done

.PHONY: sort
sort: #: sort 1 GB beside GNU sort, and kill a process in each phase: half an hour
	go run ./lab/cmd/pleach-lab bench sort --records 10000000 --members 8 --trials 11 --compare gnu
	go run ./lab/cmd/pleach-lab bench sort --records 10000000 --members 2 --trials 11 --compare gnu

.PHONY: cp
cp: #: copy 1 GiB to 16 processes beside a chain and a loop of copies, in memory (17 GiB), and kill members halfway
	go run ./lab/cmd/pleach-lab bench cp --dir /dev/shm --members 16 --size 1073741824 --trials 3 --json
	TMPDIR=/dev/shm PLEACH_BYTES=1073741824 PLEACH_MEMBERS=16 go test -count=1 -timeout 30m -run Killed -v ./agent/transfer

.PHONY: storm-agent
storm-agent: #: disturb one agent of five with 12,000 unfinished requests, long bodies, shards and strangers at once, and print figures as JSON
	PLEACH_FULL=1 go test -count=1 -timeout 10m -run SecurityStorm -v ./agent/test/security

.PHONY: holes
holes: #: plant holes in members and agents, and see that each "no" of the security tables finds them: some minutes
	PLEACH_FULL=1 go test -count=1 -timeout 30m -run SecurityHoles -v ./agent/test/security

.PHONY: flood
flood: #: flood members and candidates with 20,000 hellos and 3,000 join requests in each setting, and print figures as JSON
	PLEACH_FULL=1 go test -count=1 -timeout 10m -run SecurityFlood -v ./agent/test/security

FAULT_SECONDS ?= 60

.PHONY: faults
faults: ## test groups under faults, FAULT_SECONDS seconds each (default: 60), and print figures
	PLEACH_FULL=1 PLEACH_SECONDS=$(FAULT_SECONDS) PLEACH_ROUNDS=20 PLEACH_JOINS=1000 PLEACH_MINUTES=10 \
		go test -count=1 -timeout 0 -v ./internal/test/faults

.PHONY: agents
agents: #: stop and kill agents among 50, 16 of them on hosts of their own, and try the guides as printed
	PLEACH_FULL=1 go test -count=1 -run 'Truth|Guide|Readme' -v ./agent/cmd/pleach

.PHONY: pages-test
pages-test: #: paste the shell commands of README and guides into new directories, twice in a row; needs gcc, numpy, curl, jq and root
	PLEACH_FULL=1 go test -count=1 -timeout 60m -run '^(TestPastedBlocks|TestAllBlocksArePasted)$$' -v ./agent/cmd/pleach
	go test -count=2 -timeout 30m -run '^(TestGuide|TestReadme|TestMigration|TestFleetOfAgents|TestPageSee)' -v ./agent/cmd/pleach ./lab/cmd/pleach-lab

JOINS ?= 1000

.PHONY: joins
joins: #: let JOINS processes (default: 1000) join under load, and compare their state with that of the others
	PLEACH_JOINS=$(JOINS) go test -count=1 -timeout 0 -run '^TestStateOfJoiners$$' -v .

MEMBERS ?= 256

.PHONY: storm
storm: #: overload MEMBERS members (default: 256) for 30 s of a virtual clock with SEEDS seeds, and see them come back
	PLEACH_MEMBERS=$(MEMBERS) PLEACH_SECONDS=30 PLEACH_SEEDS=$(SEEDS) go test -count=1 -timeout 0 -run '^TestStorm$$' -v .

TIME ?= 10m

.PHONY: verify
verify: SEED ?= 1
verify: ## disturb groups between network namespaces for TIME (default: 10m) from SEED on, and check what they saw; needs root
	cd lab/verify && CGO_ENABLED=0 go build -o ../../bin/verify . && ../../bin/verify run --time $(TIME) --seed $(SEED)

.PHONY: verify-mutants
verify-mutants: SEED ?= 1
verify-mutants: #: run verify on code that is wrong on purpose, up to TIME for each mutant
	cd lab/verify && CGO_ENABLED=0 go build -o ../../bin/verify . && ../../bin/verify mutants --time $(TIME) --seed $(SEED) --round 20s

.PHONY: schedules
schedules: SEEDS = 1000000
schedules: ## agree on views under SEEDS random schedules (default: a million), and explore millions of states
	PLEACH_SEEDS=$(SEEDS) go test -timeout 0 -run RandomSchedules -v ./internal/machine/membership
	PLEACH_FULL=1 go test -timeout 0 -run Explore -v ./internal/machine/membership ./internal/machine/stream

.PHONY: simulate
simulate: ## run whole groups, and services on them, under SEEDS seeds (default: 100) on all cores
	PLEACH_SEEDS=$(SEEDS) go test -count=1 -timeout 0 -run UnderSeeds -v ./internal/test/simulation

.PHONY: simulate-bugs
simulate-bugs: #: run 1,000 simulated groups with each bug in how members communicate outside their views, and count those that find it
	PLEACH_FULL=1 go test -count=1 -timeout 0 -run '^TestFindsBugsOutsideViews$$' -v ./internal/test/simulation

COUNT ?= 100
BY ?= tests
WORKERS ?= 2

.PHONY: mutants
mutants: SEED ?= 1
mutants: ## plant COUNT bugs (default: 100) chosen by SEED, in PACKAGES or files CHANGED since a commit, and see which are found BY=tests, BY=own or BY=simulation; ONLY those that a file names; LOG=FILE goes on after an interrupt; JSON=FILE for a record
	go build -o bin/mutants ./lab/mutants
	bin/mutants -seed $(SEED) -count $(COUNT) -by $(BY) $(if $(PACKAGES),-packages $(PACKAGES)) $(if $(CHANGED),-changed $(CHANGED)) $(if $(ONLY),-only $(ONLY)) $(if $(LOG),-log $(LOG)) $(if $(JSON),-json $(JSON)) -workers $(WORKERS)

PREVIOUS ?= $(shell git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || git rev-parse --verify --quiet 'd9dc4211^{commit}')

.PHONY: upgrade
upgrade: #: replace agents of PREVIOUS (default: the last tag, or else the commit of 0.1.0, or else a build of the protocol version before) under load, and add observers
	set -e; old=$$(mktemp -d); trap 'rm -rf "$$old"' EXIT; \
	if [ -n '$(PREVIOUS)' ]; then \
		git archive '$(PREVIOUS)' | tar -x -C "$$old"; \
		command=./agent/cmd/pleach; [ -d "$$old/agent" ] || command=./cmd/pleach; \
		(cd "$$old" && CGO_ENABLED=0 go build -o "$$old/previous" $$command); \
		export PLEACH_PREVIOUS="$$old/previous"; \
	fi; \
	go test -count=1 -run '^TestRollingUpgrade$$' -v ./agent/cmd/pleach

.PHONY: fleet-test
fleet-test: #: run nine agents in three zones by the guide, kill 20 of them and cut a zone off for 10 s; copy a file to all
	PLEACH_FULL=1 go test -count=1 -timeout 30m -run '^TestFleet' -v ./agent/cmd/pleach

.PHONY: incidents
incidents: #: let the incidents of docs/operate/troubleshooting.md happen to agents on hosts of their own, and compare the screens
	PLEACH_FULL=1 go test -count=1 -run Incidents -v ./agent/cmd/pleach

.PHONY: cluster
cluster: ## start a Kubernetes cluster of three nodes on this machine in bin/cluster, as root: the first time builds two gigabytes for some 15 minutes
	$(call debian,etcd-server containerd runc containernetworking-plugins iptables)
	lab/kubernetes/build.sh bin/cluster/bin
	CGO_ENABLED=0 go build -o bin/cluster/bin/ ./agent/cmd/pleach ./lab/kubernetes
	bin/cluster/bin/kubernetes up bin/cluster

.PHONY: cluster-down
cluster-down: #: end the cluster of make cluster
	bin/cluster/bin/kubernetes down bin/cluster

.PHONY: kubernetes
kubernetes: ## run the manifests on the cluster of make cluster, with pods and nodes that come and go, and print a table; SCENARIO=drain for some, SCENARIO=pair for two agents with an arbiter
	PATH=$(abspath bin/cluster/bin):$$PATH go test -count=1 -run 'OnAPIServer|Helm' -v ./agent/test/deploy
	bin/cluster/bin/kubernetes run bin/cluster $(SCENARIO)

SCREENSHOTS ?= bin/screenshots

.PHONY: screenshots
screenshots: #: render the agent's page with 5, 50 and 500 members into SCREENSHOTS (default: bin/screenshots); needs chromium
	mkdir -p $(SCREENSHOTS)
	PLEACH_SCREENSHOTS=$(abspath $(SCREENSHOTS)) go test -count=1 -timeout 30m -run 'Browser|Screenshots' -v ./agent/ui

ARM64 ?= . ./internal/machine/stream ./internal/machine/membership ./collective

.PHONY: arm64
arm64: ## test the packages ARM64 (default: the root, stream, membership and collective) as linux/arm64; needs qemu-user-static and binfmt_misc
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go test -count=1 -short -timeout 60m $(ARM64)

.PHONY: packages
packages: ## build tarballs, .deb packages, SBOMs and checksums into dist/: some minutes the first time
	rm -rf dist
	go run ./lab/packages --out dist

.PHONY: site
site: ## build these pages and API references as a site with search into site/.vitepress/dist; needs npm and python3
	go run ./lab/reference site/reference
	cd site && npm ci --no-audit --no-fund && npm run build

.PHONY: site-check
site-check: #: follow every link of the built site
	cd site && npm run check

.PHONY: trace-picture
trace-picture: #: record a trace of a broadcast over 8 members with OpenTelemetry, and draw the picture of docs/operate/monitor.md
	PLEACH_UPDATE_GOLDEN=1 go test -count=1 -run '^TestTraceOfABroadcast$$' ./otel
	PLEACH_UPDATE_GOLDEN=1 go test -count=1 -run '^TestTracePictureIsDrawnFromItsRecord$$' ./lab/draw

.PHONY: api
api: ## record the public surface in api/, and the page of settings, after a change of them on purpose
	PLEACH_RECORD_API=1 go test -count=1 -run 'Surface|SettingsPage' ./internal/test/archtest

.PHONY: ci
ci: ## run what a change must pass
	.ci/run
