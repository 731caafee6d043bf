import { describe, expect, it } from 'vitest'
import { remembering } from '../../controller/api/http/schema-compilers.ts'

type Validate = ((value: unknown) => unknown) & { readonly errors?: unknown }

function counting() {
  const built: unknown[] = []
  const compiled: unknown[] = []
  const build = remembering((shared) => {
    built.push(shared)
    return ({ schema }) => {
      compiled.push(schema)
      const validate = (value: unknown): unknown => {
        validate.errors = value === 'wrong' ? ['it is wrong'] : null
        return validate.errors === null
      }
      validate.errors = null as string[] | null
      return validate
    }
  })
  return { build, built, compiled }
}

describe('the compilers of schemas', () => {
  it('compile a schema at its first use, and keep what a validator found wrong', () => {
    const { build, built, compiled } = counting()
    const validate = build({}, {})({ schema: { type: 'string' } }) as Validate
    expect([built, compiled]).toEqual([[], []])
    expect(validate('wrong')).toBe(false)
    expect(validate.errors).toEqual(['it is wrong'])
    expect(validate('right')).toBe(true)
    expect(validate.errors).toBeNull()
    expect([built, compiled]).toEqual([[{}], [{ type: 'string' }]])
  })

  it('create a validator once for the same schema, options and shared schemas', () => {
    const { build, built, compiled } = counting()
    const ask = () => build({ A: { type: 'string' } }, { verbose: true })({ schema: { $ref: 'A#' } })
    expect(ask()).toBe(ask())
    ask()('right')
    ask()('right')
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
