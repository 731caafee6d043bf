/** The objects for kustomize as kubectl renders them; no cluster is needed. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { TOOLS, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { chartText, KUSTOMIZE_FOLDER } from '../../tools/reference/kustomize.ts'

interface Named {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

function byName(text: string): Readonly<Record<string, Named>> {
  const objects = parseAllDocuments(text).flatMap((each) => (each.toJS() as Named | null) ?? [])
  return Object.fromEntries(
    objects.map((each) => [`${each.kind} ${each.metadata.namespace ?? ''}/${each.metadata.name}`, each]),
  )
}

describe.skipIf(whyNoControlPlane('helm') !== null)('kubectl kustomize', () => {
  it('renders the objects of the chart, and their namespace', () => {
    const text = execFileSync(join(TOOLS, 'kubectl'), ['kustomize', KUSTOMIZE_FOLDER], { encoding: 'utf8' })
    const { 'Namespace /headroom': namespace, ...rendered } = byName(text)
    expect(namespace).toBeDefined()
    expect(Object.keys(rendered).length).toBeGreaterThan(30)
    expect(rendered).toEqual(byName(chartText()))
  })
})
