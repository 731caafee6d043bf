/** What the API server is told about the webhooks. The real one uses it in test/kubernetes. */
import { describe, expect, it } from 'vitest'
import { webhookConfigurations } from '../../../operator/admission/webhook-configurations.ts'

interface Webhook {
  readonly name: string
  readonly clientConfig: object
  readonly failurePolicy: 'Fail' | 'Ignore'
  readonly sideEffects: string
  readonly timeoutSeconds: number
  readonly objectSelector?: object
  readonly matchConditions?: readonly { readonly expression: string }[]
  readonly rules: readonly { readonly resources: readonly string[]; readonly operations: readonly string[] }[]
}

const SERVICE = { namespace: 'headroom', name: 'headroom-admission', port: 443 }

function webhooks(place: Parameters<typeof webhookConfigurations>[0] = { service: SERVICE }): Webhook[] {
  return webhookConfigurations(place, 'Q0E=').flatMap(({ webhooks: each }) => each as Webhook[])
}

function named(name: string): Webhook {
  return webhooks().find((each) => each.name.startsWith(`${name}.`)) ?? expect.unreachable(name)
}

describe('the webhooks', () => {
  it('are asked only about pods with our label before a pod may be created', () => {
    const required = webhooks().filter(
      ({ failurePolicy, rules }) => failurePolicy === 'Fail' && rules[0]?.resources[0] === 'pods',
    )
    expect(required.map(({ name }) => name.split('.')[0])).toEqual(['mutate-pods', 'validate-pods'])
    for (const { objectSelector } of required)
      expect(objectSelector).toEqual({ matchLabels: { 'gpu-runtime': 'headroom' } })
  })

  it('do not hold up a pod with another value of the label', () => {
    expect(named('warn-pods')).toMatchObject({
      failurePolicy: 'Ignore',
      objectSelector: {
        matchExpressions: [
          { key: 'gpu-runtime', operator: 'Exists' },
          { key: 'gpu-runtime', operator: 'NotIn', values: ['headroom'] },
        ],
      },
    })
  })

  it('are not asked about pods that have a node from the start', () => {
    expect(named('mutate-pods').matchConditions).toEqual([
      { name: 'unassigned', expression: '!has(object.spec.nodeName)' },
    ])
  })

  it('see changes of pods and policies, and change only new pods', () => {
    expect(named('mutate-pods').rules[0]?.operations).toEqual(['CREATE'])
    expect(named('validate-pods').rules[0]?.operations).toEqual(['CREATE', 'UPDATE'])
    const [policies] = named('validate-policies').rules
    expect(policies?.operations).toEqual(['CREATE', 'UPDATE'])
    expect(policies?.resources).toEqual(expect.arrayContaining(['clustergpupolicies', 'vendornodepolicies']))
  })

  it('have no side effects, and a time limit that the API server accepts', () => {
    for (const { sideEffects, timeoutSeconds } of webhooks()) {
      expect(sideEffects).toBe('None')
      expect(timeoutSeconds).toBeLessThanOrEqual(30)
    }
  })

  it.each([
    [{ service: SERVICE }, { service: { ...SERVICE, path: '/mutate-pods' }, caBundle: 'Q0E=' }],
    [{ url: 'https://host:8443' }, { url: 'https://host:8443/mutate-pods', caBundle: 'Q0E=' }],
  ])('are reached at %j, each at its own path', (place, clientConfig) => {
    const own = webhooks(place)
    expect(own[0]?.clientConfig).toEqual(clientConfig)
  })
})
