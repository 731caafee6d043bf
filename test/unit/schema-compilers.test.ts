import { describe, expect, it } from 'vitest'
import { remembering } from '../../controller/api/http/schema-compilers.ts'

function counting() {
  const built: unknown[] = []
  const compiled: unknown[] = []
  const build = remembering((shared) => {
    built.push(shared)
    return ({ schema }) => {
      compiled.push(schema)
      return { shared, schema }
    }
  })
  return { build, built, compiled }
}

describe('the compilers of schemas', () => {
  it('create a validator once for the same schema, options and shared schemas', () => {
    const { build, built, compiled } = counting()
    const ask = () => build({ A: { type: 'string' } }, { verbose: true })({ schema: { $ref: 'A#' } })
    expect(ask()).toBe(ask())
    expect([built.length, compiled.length]).toEqual([1, 1])
  })

  it.each([
    ['schema', [{}, {}, { type: 'integer' }]],
    ['options', [{}, { allErrors: true }, { type: 'string' }]],
    ['shared schemas', [{ A: {} }, {}, { type: 'string' }]],
  ])('create different validators for different %s', (_what, [shared, options, schema]) => {
    const { build } = counting()
    const first = build({}, {})({ schema: { type: 'string' } })
    expect(build(shared, options)({ schema })).not.toBe(first)
  })
})
