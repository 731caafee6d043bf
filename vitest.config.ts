import { configDefaults, defineConfig } from 'vitest/config'

/**
 * Pure code: no process, no broker, no browser. The files share their worker, so that each module is loaded
 * once a worker instead of once a file. A test must leave no global state behind.
 */
const PURE = ['unit', 'property', 'scenario', 'tidy'].map((folder) => `test/${folder}/**/*.test.ts`)
/** Tests that kill and stop processes and wait for real leases; `make test-kills` and its longer forms. */
const KILLS = ['faults', 'durability', 'storms'].map((folder) => `test/${folder}/**/*.test.ts`)

/**
 * Node runs the sources itself, in threads: only so does c8 see what really ran. With vitest's defaults it
 * reports 0% or a false 100% (docs/decisions/0007-vitest-under-c8.md). The canaries in
 * test/support/coverage-canary prove it on every run.
 */
export default defineConfig({
  test: {
    pool: 'threads',
    // Of two cores vitest would use one; many tests wait for processes, so three keep two cores busy.
    maxWorkers: 3,
    experimental: { viteModuleRunner: false },
    // A test that waits for processes may take long on a busy machine; one that hangs still ends.
    testTimeout: 120_000,
    // A fact that is waited for may come late on a loaded machine.
    expect: { poll: { timeout: 90_000 } },
    hookTimeout: 120_000,
    reporters: ['default', './tools/tests/slowest-tests.ts'],
    projects: [
      { extends: true, test: { name: 'pure', include: PURE, isolate: false } },
      {
        extends: true,
        test: {
          name: 'processes',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...PURE, ...KILLS],
        },
      },
      { extends: true, test: { name: 'kills', include: KILLS } },
    ],
  },
})
