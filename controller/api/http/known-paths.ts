/** Methods of each path, so that a wrong method is answered with 405 and the permitted ones. */
export class KnownPaths {
  readonly #methodsOf = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()

  /** @param url as the router has it: `/nodes/:node_id` */
  add(url: string, methods: readonly string[]): void {
    const known = this.#methodsOf.get(url) ?? { pattern: patternOf(url), methods: new Set() }
    this.#methodsOf.set(url, known)
    for (const method of methods) known.methods.add(method)
  }

  /**
   * In alphabetical order; empty when there is no such path. A path that a route names letter by letter has
   * the methods of that route alone.
   */
  methodsOf(path: string): readonly string[] {
    const exact = this.#methodsOf.get(path)
    const methods = new Set<string>(exact?.methods)
    if (exact !== undefined) return inOrder(methods)
    for (const known of this.#methodsOf.values()) {
      if (known.pattern.test(path)) known.methods.forEach((method) => methods.add(method))
    }
    return inOrder(methods)
  }
}

function inOrder(methods: ReadonlySet<string>): readonly string[] {
  return [...methods].sort((a, b) => (a < b ? -1 : 1))
}

function patternOf(url: string): RegExp {
  const parts = url
    .split('/')
    .map((part) =>
      part === '*' ? '.*' : part.startsWith(':') ? '[^/]+' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
    )
  return new RegExp(`^${parts.join('/')}$`)
}
