/** The Helm chart as helm renders it and as the API server takes it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { DAEMON_SETS } from '../../operator/ports/kube-api.ts'
import { argsOf, CHART, helm, helmOn, olderChart, rendered } from '../support/kubernetes/chart.ts'
import { ControlPlane, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'

const FIELD = 'idleSwapOutSeconds'

describe.skipIf(whyNoControlPlane('helm') !== null)('With helm', () => {
  let plane: ControlPlane
  beforeAll(async () => {
    plane = await ControlPlane.start()
    await plane.kubectl(['create', 'namespace', 'headroom'])
  })
  afterAll(() => plane.stop())

  it('The chart has no faults for helm lint', () => {
    expect(helm('lint', CHART, '--strict', '--kube-version', '1.36.4')).toContain('0 chart(s) failed')
  })

  it('The API server takes every object, without a warning about an unknown field', async () => {
    const items = rendered()
    expect(items.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining([
        'Deployment',
        'MutatingWebhookConfiguration',
        'NetworkPolicy',
        'PriorityClass',
      ]),
    )
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
    await plane.kubectl(['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'], list)
  })

  it('An upgrade changes older resources, an uninstall keeps them, and those of others stay', async () => {
    const older = olderChart(plane.folder, FIELD)
    // No kubelet runs the Job before an uninstall, and no controller makes Deployments ready.
    const release = (action: string, name: string, ...args: readonly string[]): Promise<unknown> =>
      helmOn(plane, action, name, ...args, '--namespace', 'headroom', '--no-hooks')
    const crd = () => plane.kubectl(['get', 'crd', 'clustergpupolicies.headroom.dev', '-o', 'yaml'])
    await plane.kubectl(['delete', 'crd', '--all'])
    await release('install', 'first', older)
    expect(await crd()).not.toContain(`${FIELD}:`)
    await release('upgrade', 'first', CHART)
    expect(await crd()).toContain(`${FIELD}:`)
    await release('uninstall', 'first')
    expect(await crd()).toContain('meta.helm.sh/release-name: first')
    const notes = await release('install', 'second', CHART)
    expect(notes).toContain('this release does not change them')
    expect(await crd()).toContain('meta.helm.sh/release-name: first')
    await release('uninstall', 'second')
  })

  it('An upgrade takes back a release whose agents an uninstall has released', async () => {
    const release = (action: string, ...args: readonly string[]): Promise<unknown> =>
      helmOn(plane, action, 'kept', ...args, '--namespace', 'headroom', '--no-hooks')
    const args = () => plane.kubectl(['get', 'daemonset', 'headroom-agent', '-n', 'headroom', '-o', 'yaml'])
    await release('install', CHART)
    const key = { namespace: 'headroom', name: 'headroom-agent' }
    const path = '/spec/template/spec/containers/0/args/-'
    const body = [{ op: 'add', path, value: '--release' }] as const
    await plane.client().patch(DAEMON_SETS, key, { type: 'json', body })
    expect(await args()).toContain('--release')
    await release('upgrade', CHART, '--force-conflicts')
    expect(await args()).not.toContain('--release')
    await release('uninstall')
  })

  it('Values reach the command lines', () => {
    expect(argsOf('headroom-operator', '--set', 'controller.clusterOvercommitPercent=50')).toEqual([
      ...['operator', 'run', '--lease=15s', '--overcommit=50', '--probe=60s'],
    ])
    const recorded = rendered('--set', 'operator.recording=true').find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'headroom-operator',
    )
    expect(JSON.stringify(recorded)).toMatch(/--recording=([^"]+)"[^]*"name":"recording","mountPath":"\1"/)
    expect(argsOf('headroom-agent', '--set', 'agent.hostSwapMib=4096')).toContain('--host-swap-mib=4096')
    const registry = 'agent.image.repository=registry.example/agent,agent.image.tag=2.0.1'
    const admission = argsOf('headroom-admission', '--set', `swap.memory=require,${registry}`)
    const forecasts = [
      ...['--operator=headroom-extender.headroom.svc:443', '--certificates=/etc/headroom/certificates'],
    ]
    expect(admission.slice(2)).toEqual([
      ...['--swap-memory=require', '--overcommit=0', '--helper-image=registry.example/agent:2.0.1'],
      ...forecasts,
    ])
    for (const value of ['swap.livenessProbes=noswap', 'agent.enabled=false'])
      expect(argsOf('headroom-admission', '--set', value)).toEqual([
        ...['operator', 'admission', '--swap-memory=raise', '--overcommit=0', ...forecasts],
      ])
  })

  it('With observe nothing can gate, bind or refuse a pod', () => {
    const all = rendered('--set', 'observe=true')
    const names = all.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(names).toContain('Deployment headroom-operator')
    expect(names.filter((name) => /headroom-scheduler$/.test(name))).toEqual([
      ...['NetworkPolicy headroom-scheduler', 'Secret headroom-scheduler'],
    ])
    expect(names).not.toContain('ValidatingAdmissionPolicyBinding headroom-admission')
    expect(names).toContain('ValidatingAdmissionPolicyBinding headroom-operator')
    expect(JSON.stringify(all)).not.toMatch(/"failurePolicy":"Fail"[^}]*webhook|pods\/binding/)
    for (const { webhooks = [] } of all as readonly { webhooks?: { failurePolicy: string }[] }[])
      for (const { failurePolicy } of webhooks) expect(failurePolicy).toBe('Ignore')
    for (const name of ['headroom-admission', 'headroom-operator'])
      expect(argsOf(name, '--set', 'observe=true')).toContain('--observe')
    expect(JSON.stringify(rendered())).toContain('pods/binding')
  })

  it('Digests name the images, and the objects for Prometheus have the rules of the file', () => {
    const digest = `sha256:${'a'.repeat(64)}`
    const images = ['image', 'agent.image', 'scheduler.image'].flatMap((name) => [
      ...['--set', `${name}.digest=${digest}`],
    ])
    const all = rendered(...images, '--set', 'prometheus.podMonitor=true,prometheus.rules=true')
    const named = all.flatMap(({ spec }) => spec?.template?.spec.containers.map(({ image }) => image) ?? [])
    expect(named.length).toBeGreaterThanOrEqual(4)
    for (const image of named) expect(image).toMatch(new RegExp(`@${digest}$`))
    const rules = parse(readFileSync(join(CHART, 'files/rules.yaml'), 'utf8')) as object
    expect(all.find(({ kind }) => kind === 'PrometheusRule')?.spec).toEqual(rules)
    expect(all.map(({ kind }) => kind)).toContain('PodMonitor')
  })

  it.each([
    'controller.clusterOvercommitPercent=1001',
    'controller.clusterOvercommitPercent=-1',
    'controller.clusterOvercommitPercent=half',
    'controller.clusterOvercommit=5',
    'swap.memory=grow',
    'swap.livenessProbes=ignore',
    'admission.replicas=0',
    'operator.leaseSeconds=0',
    'operator.recording=always',
    'image.digest=latest',
    'image.pullPolicy=Sometimes',
    'networkPolicy.enabled=5',
    'agents.replicas=1',
    'observe=2',
    'agent.hostSwapMib=-1',
    'agent.image.digest=1',
    'prometheus.rules=yes',
  ])('The value %s is refused with its path', (value) => {
    const path = value.split('=')[0]!.split('.')[0]!
    expect(() => rendered('--set', value)).toThrow(new RegExp(`values don't meet[^]*${path}`))
  })
})
