/**
 * Loaded before everything else in each thread of the tests: Kysely comes from one file instead of 300. Each
 * store opens two threads that load it, which otherwise costs 0.4 s of CPU (test/support/bundled-kysely.ts).
 */
import { registerHooks } from 'node:module'

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'kysely'
      ? { url: process.env.HEADROOM_BUNDLED_KYSELY, format: 'module', shortCircuit: true }
      : next(specifier, context),
})
