/**
 * Loaded before everything else in each thread of the tests and in the commands that they start: packages of
 * many modules come from a few files (test/support/bundled-packages.ts).
 */
import { registerHooks } from 'node:module'

const urls = new Map(Object.entries(JSON.parse(process.env.HEADROOM_BUNDLED_PACKAGES)))

registerHooks({
  resolve: (specifier, context, next) => {
    const url = urls.get(specifier)
    return url === undefined ? next(specifier, context) : { url, format: 'module', shortCircuit: true }
  },
})
