/** The name of an image without its tag and digest: `registry.example:5000/team/train`. */
export function repositoryOf(reference: string): string {
  const [withTag = ''] = reference.split('@')
  const at = withTag.lastIndexOf(':')
  return at > withTag.lastIndexOf('/') ? withTag.slice(0, at) : withTag
}

/** The same with the registry that engines add to a name without one. */
export function fullNameOf(reference: string): string {
  const name = repositoryOf(reference)
  const [first = '', ...rest] = name.split('/')
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  if (hasRegistry) return name
  return `docker.io/${rest.length === 0 ? `library/${first}` : name}`
}
