/**
 * Validators and serialisers out of schemas, made once in a thread. All interfaces in it have the same
 * routes, a controller's and that of each session beside it; to make them anew is most of what an interface
 * needs to start.
 */
import ajvCompiler from '@fastify/ajv-compiler'
import serializerCompiler from '@fastify/fast-json-stringify-compiler'

type Compile<T> = (route: { readonly schema?: unknown }) => T
type Build<T> = (shared: unknown, options: unknown) => Compile<T>

/**
 * Fastify's own compilers, which give the same function for the same schema, options and shared schemas.
 * There are as many as this program has schemas: nobody sends one.
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
