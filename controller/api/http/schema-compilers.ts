/**
 * Validators and serialisers compiled from schemas, once per thread. All APIs in it have the same routes: the
 * controller's, and that of each session. Compiling them again would be most of the start-up time of an API.
 */
import ajvCompiler from '@fastify/ajv-compiler'
import serializerCompiler from '@fastify/fast-json-stringify-compiler'

type Compile<T> = (route: { readonly schema?: unknown }) => T
type Build<T> = (shared: unknown, options: unknown) => Compile<T>

/**
 * Fastify's own compilers, which return the same function for the same schema, options and shared schemas.
 * Their number is limited by the schemas of this program; clients cannot add any.
 */
export const SCHEMA_COMPILERS = {
  buildValidator: remembering(ajvCompiler() as Build<unknown>) as ReturnType<typeof ajvCompiler>,
  buildSerializer: remembering(serializerCompiler() as Build<unknown>) as ReturnType<
    typeof serializerCompiler
  >,
}

export function remembering<T>(build: Build<T>): Build<T> {
  const known = new Map<string, Map<string, T>>()
  return (shared, options) => {
    const surroundings = JSON.stringify([shared, options])
    const made = known.get(surroundings) ?? new Map<string, T>()
    known.set(surroundings, made)
    let compile: Compile<T> | null = null
    return (route) => {
      const text = JSON.stringify(route.schema)
      const before = made.get(text)
      if (before !== undefined) return before
      compile ??= build(shared, options)
      const fresh = compile(route)
      made.set(text, fresh)
      return fresh
    }
  }
}
