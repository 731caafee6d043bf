/**
 * Validators and serialisers compiled from schemas, each at its first use and once per thread. All APIs in it
 * have the same routes: the controller's, and that of each session. Compiling them all would be most of the
 * start-up time of an API.
 */
import ajvCompiler from '@fastify/ajv-compiler'
import serializerCompiler from '@fastify/fast-json-stringify-compiler'

type Checked = (value: unknown) => unknown
type Compile<T> = (route: { readonly schema?: unknown }) => T
type Build<T> = (shared: unknown, options: unknown) => Compile<T>

/**
 * Fastify's own compilers, which return the same function for the same schema, options and shared schemas.
 * Their number is limited by the schemas of this program; clients cannot add any.
 */
export const SCHEMA_COMPILERS = {
  buildValidator: remembering(ajvCompiler() as Build<Checked>) as ReturnType<typeof ajvCompiler>,
  buildSerializer: remembering(serializerCompiler() as Build<Checked>) as ReturnType<
    typeof serializerCompiler
  >,
}

export function remembering(build: Build<Checked>): Build<Checked> {
  const known = new Map<string, Map<string, Checked>>()
  return (shared, options) => {
    const surroundings = JSON.stringify([shared, options])
    const made = known.get(surroundings) ?? new Map<string, Checked>()
    known.set(surroundings, made)
    let compile: Compile<Checked> | null = null
    return (route) => {
      const text = JSON.stringify(route.schema)
      const before = made.get(text)
      if (before !== undefined) return before
      const fresh = atFirstUse(() => (compile ??= build(shared, options))(route))
      made.set(text, fresh)
      return fresh
    }
  }
}

/** A validator says what is wrong in its member `errors`. */
function atFirstUse(compile: () => Checked): Checked {
  let compiled: Checked | null = null
  const checked: Checked = (value) => (compiled ??= compile())(value)
  return Object.defineProperty(checked, 'errors', {
    get: () => (compiled as { readonly errors?: unknown } | null)?.errors,
  })
}
