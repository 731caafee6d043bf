/**
 * Loaded with `node --import`: applies the edits of the mutant in MUTANT while sources are loaded. No file is
 * written.
 */
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'
import { type Edit, mutated } from './mutant.ts'
import { mutantNamed } from './mutants.ts'

const ROOT = join(import.meta.dirname, '../..')
const name = process.env['MUTANT'] ?? ''
const edits = new Map<string, Edit[]>()

if (name !== '') {
  for (const edit of mutantNamed(name).edits) {
    const url = pathToFileURL(join(ROOT, edit.file)).href
    edits.set(url, [...(edits.get(url) ?? []), edit])
  }
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      const mine = edits.get(url)
      if (mine === undefined || loaded.source === null || loaded.source === undefined) return loaded
      const text = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
      return { ...loaded, source: mine.reduce(mutated, text) }
    },
  })
}
