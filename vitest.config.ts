import { join } from 'node:path'
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import LongestFirst from './tools/tests/longest-first.ts'

type ProjectConfig = TestProjectInlineConfiguration['test']

const tests = (...places: string[]) => places.map((place) => `test/${place}/**/*.test.ts`)

/** Generated worlds that take the paths of the simulator's rules; the other worlds repeat them. */
const MEASURED_WORLDS = ['faults', 'snapshot-world'].map((name) => `test/property/${name}.test.ts`)
/** Tests of single modules. Coverage is measured over these and ADAPTERS (docs/decisions/0007). */
const UNIT = [...tests('unit'), ...MEASURED_WORLDS]
/**
 * Generated messages, the page, and the texts and tools of this repository; of the measured folders they
 * repeat what other tests take.
 */
const UNMEASURED_UNIT = [
  'asyncapi',
  'cli-reference',
  'codec',
  'deploy-*',
  'import-rules',
  'litter',
  'mutants',
  'purity-rules',
  'scenario-hostile',
  'server-core-property',
  'ui-*',
].map((name) => `test/unit/${name}.test.ts`)
/** Tests of store, bus, sign-in and sessions with a real database, broker, provider and simulation. */
const ADAPTERS = [
  ...tests('contract'),
  ...['exercises', 'nats-bus', 'nats-hostile', 'postgres-*', 'sign-in*', 'sqlite-*'].map(
    (name) => `test/integration/${name}.test.ts`,
  ),
]
/** Pure code in quantity: generated worlds, library scenarios, the texts of all files. */
const WORLDS = [...tests('property', 'scenario', 'tidy'), ...UNMEASURED_UNIT]
/** Tests that kill and stop processes and wait for real leases; `make test-kills` and its longer forms. */
const KILLS = tests('faults', 'durability', 'ha', 'ha-storms', 'storms')
/** The page in a real browser. */
const PAGES = tests('ui')
/** Packing and installing takes a minute; `make test-package`. */
const PACKAGE = tests('package')

/** Model servers that sleep and wake in real time; `make test-serving`. */
const SERVING = tests('serving')

/** etcd and kube-apiserver, built by `make kubernetes-tools`; `make test-kubernetes`. */
const KUBERNETES = tests('kubernetes')

/** They build the packages first; `make test-tutorial`. */
const TUTORIALS = tests('tutorials')

/** V8's counters cost 60% more CPU time and exclude the compile cache. */
const UNMEASURED = {
  NODE_V8_COVERAGE: '',
  NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/compiled'),
}
/** Files share their worker: each module is loaded once per worker. A test must leave no global state. */
const SHARED = { isolate: false }
/**
 * With two cores, vitest would use one worker. Tests that wait for processes, disks and leases leave cores
 * idle.
 */
const WAITING = { ...SHARED, maxWorkers: 6, sequence: { groupOrder: 1 } }
/** More would load the modules more often. `make test` runs them at low priority next to those that wait. */
const COMPUTING = { ...SHARED, maxWorkers: 3, sequence: { groupOrder: 2 } }

/**
 * Node runs the sources itself, in threads: only so does c8 see what really ran. With vitest's defaults it
 * reports 0% or a false 100% (docs/decisions/0007-vitest-under-c8.md). The canaries in
 * test/support/coverage-canary prove it on every run.
 */
export default defineConfig({
  test: {
    pool: 'threads',
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    experimental: { viteModuleRunner: false },
    globalSetup: './test/support/bundled-packages.ts',
    setupFiles: './test/support/setup.ts',
    execArgv: ['--import', join(import.meta.dirname, 'test/support/preload.mjs')],
    // A test that waits for processes may take long on a busy machine; one that hangs still ends.
    testTimeout: 300_000,
    // A fact that is waited for may come late on a loaded machine.
    expect: { poll: { timeout: 90_000 } },
    hookTimeout: 300_000,
    reporters: ['default', './tools/tests/test-summary.ts'],
    projects: [
      project('unit', { include: UNIT, exclude: UNMEASURED_UNIT, ...COMPUTING }),
      project('adapters', { include: ADAPTERS, ...WAITING }),
      project('worlds', { include: WORLDS, exclude: MEASURED_WORLDS, ...COMPUTING, env: UNMEASURED }),
      project('processes', {
        include: tests('**'),
        exclude: [
          ...configDefaults.exclude,
          ...UNIT,
          ...ADAPTERS,
          ...WORLDS,
          ...KILLS,
          ...PAGES,
          ...PACKAGE,
          ...SERVING,
          ...KUBERNETES,
          ...TUTORIALS,
        ],
        globalSetup: './test/support/demonstration-place.ts',
        ...WAITING,
        env: UNMEASURED,
      }),
      project('ui', {
        include: PAGES,
        globalSetup: ['./test/support/demonstration-place.ts', './test/support/shared-browser.ts'],
        ...SHARED,
        env: UNMEASURED,
      }),
      project('kills', { include: KILLS, env: UNMEASURED }),
      project('package', { include: PACKAGE, env: UNMEASURED }),
      project('serving', { include: SERVING, env: UNMEASURED }),
      project('kubernetes', { include: KUBERNETES, env: UNMEASURED }),
      project('tutorials', { include: TUTORIALS, env: UNMEASURED }),
    ],
  },
})

function project(name: string, test: ProjectConfig): TestProjectInlineConfiguration {
  return { extends: true, test: { name, ...test } }
}
