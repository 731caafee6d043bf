import { defineConfig } from 'vitest/config'

/**
 * Node runs the sources itself, in threads: only so does c8 see what really ran. With vitest's defaults it
 * reports 0 % or a false 100 % (docs/decisions/0007-vitest-under-c8.md). The canaries in
 * test/support/coverage-canary prove it on every run.
 */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'threads',
    // Of two cores vitest would use one; many tests wait for processes, so three keep two cores busy.
    maxWorkers: 3,
    experimental: { viteModuleRunner: false },
    // A test that waits for processes may take long on a busy machine; one that hangs still ends.
    testTimeout: 120_000,
    // A fact that is waited for may come late on a loaded machine.
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 120_000,
  },
})
