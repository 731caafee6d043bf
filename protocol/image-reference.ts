/** The name of an image without its tag and digest: `registry.example:5000/team/train`. */
export function repositoryOf(reference: string): string {
  const [withTag = ''] = reference.split('@')
  const at = withTag.lastIndexOf(':')
  return at > withTag.lastIndexOf('/') ? withTag.slice(0, at) : withTag
}
