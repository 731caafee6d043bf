import type { KubeApi, KubeObject, ListOptions, ResourceKind } from './kube-api.ts'

const PAGE = 500

/** All pages of a list. */
export async function allObjects(
  api: Pick<KubeApi, 'list'>,
  kind: ResourceKind,
  options: Pick<ListOptions, 'namespace' | 'labelSelector'> = {},
): Promise<readonly KubeObject[]> {
  let page = await api.list(kind, { ...options, limit: PAGE })
  const found = [...page.items]
  while (page.continueFrom !== null) {
    page = await api.list(kind, { ...options, limit: PAGE, continueFrom: page.continueFrom })
    found.push(...page.items)
  }
  return found
}
