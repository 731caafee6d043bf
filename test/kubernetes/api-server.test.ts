/** The real API server keeps the contract of the one in memory, and serves the operator's resources. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { schemaOf, type StructuralSchema } from '../../operator/contract/crd.ts'
import { OWN_KINDS } from '../../operator/contract/policies.ts'
import { apiContract } from '../support/kubernetes/api-contract.ts'
import { ControlPlane, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'

describe.skipIf(whyNoControlPlane() !== null)('With etcd and kube-apiserver', () => {
  let plane: ControlPlane
  beforeAll(async () => {
    plane = await ControlPlane.start()
  })
  afterAll(() => plane?.stop())

  apiContract('The real API server', async () => ({
    api: plane.client(),
    // Its cache of watches begins long after version 1.
    compact: () => {},
    end: async () => {},
  }))

  it.each(OWN_KINDS)('kubectl explain shows every field of $kind with its description', async (own) => {
    const { spec, status } = schemaOf(own).properties ?? {}
    const pages = { ...(spec === undefined ? {} : { spec }), ...(status === undefined ? {} : { status }) }
    for (const [path, schema] of Object.entries(pages).flatMap(([name, field]) => recordsOf(name, field))) {
      const page = await plane.kubectl(['explain', `${own.plural}.${path}`])
      for (const [name, { description = '' }] of Object.entries(schema.properties ?? {})) {
        expect(page).toMatch(new RegExp(`^ +${name}\\t<`, 'm'))
        expect(page.replaceAll(/\s+/g, ' ')).toContain(description.slice(0, 60))
      }
    }
  })

  it('kubectl shows the columns, and finds the resources by their short names and category', async () => {
    const policy = {
      apiVersion: 'headroom.dev/v1alpha1',
      kind: 'VendorNodePolicy',
      metadata: { name: 'columns' },
      spec: { nodeName: 'gpu-7', vramOvercommitPercent: 70 },
    }
    await plane.kubectl(['apply', '-f', '-'], JSON.stringify(policy))
    expect(await plane.kubectl(['get', 'vnp', 'columns'])).toMatch(
      /^NAME +NODE +PERCENT +RESERVE +READY +AGE\ncolumns +gpu-7 +70 /,
    )
    expect(await plane.kubectl(['get', 'headroom', '-o', 'name'])).toContain('vendornodepolicy')
    const selected = ['get', 'vnp', '-o', 'name', '--field-selector', 'spec.nodeName=gpu-7']
    expect((await plane.kubectl(selected)).trim()).toBe('vendornodepolicy.headroom.dev/columns')
  })

  it.each([
    ['vendornodepolicies', 'VendorNodePolicy', 'x', { vramOvercommitPercent: 1001 }],
    ['clustergpupolicies', 'ClusterGPUPolicy', 'default', { defaultVramOvercommitPercent: -1 }],
    ['clustergpupolicies', 'ClusterGPUPolicy', 'default', { idleSwapOutSeconds: 0 }],
    ['vendornodepolicies', 'VendorNodePolicy', 'x', { nodeName: 'Not A Name' }],
  ])('kubectl apply of %s with a bad value names the field (%#)', async (_plural, kind, name, spec) => {
    const object = { apiVersion: 'headroom.dev/v1alpha1', kind, metadata: { name }, spec }
    const [field] = Object.keys(spec)
    await expect(plane.kubectl(['apply', '-f', '-'], JSON.stringify(object))).rejects.toThrow(`spec.${field}`)
  })
})

/** Every object below a field, with its path. */
function recordsOf(path: string, schema: StructuralSchema): readonly (readonly [string, StructuralSchema])[] {
  const { properties, items } = schema
  if (items !== undefined) return recordsOf(path, items)
  if (properties === undefined) return []
  const below = Object.entries(properties).flatMap(([name, field]) => recordsOf(`${path}.${name}`, field))
  return [[path, schema], ...below]
}
