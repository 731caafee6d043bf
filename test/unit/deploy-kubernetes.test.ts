import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { gpuServerManifest } from '../../cli/nats/kubernetes-text.ts'
import { hostRules } from '../../controller/api/auth/access.ts'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { whyNotUnderstood } from '../support/command-lines.ts'

const FOLDER = join(import.meta.dirname, '../../deploy/kubernetes')
const APPLIED = ['namespace.yaml', 'broker.yaml', 'controller.yaml', 'network-policy.yaml', 'ingress.yaml']
const NAMED = new Set<string>(Object.values(ENVIRONMENT).map(({ name }) => name))

interface Container {
  readonly name: string
  readonly image: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
  readonly securityContext: { readonly [key: string]: unknown }
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly startupProbe?: Probe
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}
interface PodSpec {
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes: readonly { readonly name: string; readonly [source: string]: unknown }[]
  readonly securityContext: { readonly [key: string]: unknown }
  readonly automountServiceAccountToken: boolean
  readonly runtimeClassName?: string
}
interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  // The content of a spec depends on the kind; the tests state the fields that they use.
  readonly spec: any // eslint-disable-line @typescript-eslint/no-explicit-any
}

const files = globSync('*.yaml', { cwd: FOLDER }).filter((name) => name !== 'kustomization.yaml')
const manifestsIn = (name: string): readonly Manifest[] => {
  const documents = parseAllDocuments(readFileSync(join(FOLDER, name), 'utf8'))
  return documents.map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS() as Manifest
  })
}
const applied = APPLIED.flatMap(manifestsIn)
const one = (kind: string, name: string): Manifest => {
  const found = applied.filter((each) => each.kind === kind && each.metadata.name === name)
  if (found.length !== 1) throw new Error(`${found.length} times ${kind} ${name}`)
  return found[0] as Manifest
}
const podsOf = (manifests: readonly Manifest[]) =>
  manifests
    .filter(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet')
    .map((each): [string, PodSpec] => [each.metadata.name, each.spec.template.spec as PodSpec])

describe('deploy/kubernetes', () => {
  it('has every file in the kustomization except those of the GPU servers', () => {
    const [kustomization] = manifestsIn('kustomization.yaml') as unknown as [
      { readonly resources: readonly string[] },
    ]
    expect(kustomization.resources).toEqual(APPLIED)
    expect(files.filter((name) => !APPLIED.includes(name))).toEqual(['gpu-namespace.yaml', 'gpu-server.yaml'])
    for (const { kind, metadata } of applied)
      if (kind !== 'Namespace')
        expect([metadata.name, metadata.namespace]).toEqual([metadata.name, 'headroom'])
  })

  it('publishes page and API as 30080 and the broker as 30422, with existing pods behind them', () => {
    for (const [name, nodePort, port] of [
      ['headroom-controller', 30080, 'http'],
      ['headroom-broker', 30422, 'nats'],
    ] as const) {
      const service = one('Service', name).spec
      expect([service.type, service.ports]).toEqual([
        'NodePort',
        [expect.objectContaining({ nodePort, targetPort: port })],
      ])
      const { template } = one('Deployment', name).spec
      expect(template.metadata.labels).toMatchObject(service.selector)
      expect((template.spec as PodSpec).containers[0]?.ports?.map((each) => each.name)).toContain(port)
    }
  })

  it('runs exactly one controller, because its store can have only one writer', () => {
    const { replicas, strategy } = one('Deployment', 'headroom-controller').spec
    expect([replicas, strategy]).toEqual([1, { type: 'Recreate' }])
    expect(one('PersistentVolumeClaim', 'headroom-controller').spec.accessModes).toEqual(['ReadWriteOnce'])
  })

  it('restarts the controller when it does not answer, and not while the broker is unreachable', () => {
    const [container] = podsOf(applied).find(([name]) => name === 'headroom-controller')?.[1].containers ?? []
    const path = (probe: Probe | undefined) => [probe?.httpGet.path, probe?.httpGet.port]
    expect(path(container?.livenessProbe)).toEqual(['/livez', 'http'])
    expect(path(container?.startupProbe)).toEqual(['/livez', 'http'])
    expect(path(container?.readinessProbe)).toEqual(['/readyz', 'http'])
    expect(one('Service', 'headroom-controller').spec.publishNotReadyAddresses).toBe(true)
  })

  it.each(podsOf(applied))(
    '%s runs as an ordinary user with a read-only root and without privileges',
    (_, pod) => {
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(pod.automountServiceAccountToken).toBe(false)
      for (const { securityContext } of pod.containers) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
      }
    },
  )

  it('Every pod has a network policy, and only the named sources may reach the API', () => {
    const policies = applied.filter(({ kind }) => kind === 'NetworkPolicy')
    expect(policies.find(({ metadata }) => metadata.name === 'deny-by-default')?.spec).toEqual({
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
    })
    for (const [name] of podsOf(applied)) {
      expect(policies.filter(({ spec }) => spec.podSelector.matchLabels?.app === name)).toHaveLength(1)
    }
    const [ingress] = one('NetworkPolicy', 'headroom-controller').spec.ingress as [
      { readonly from: readonly { readonly ipBlock?: { readonly cidr: string } }[] },
    ]
    // A block reserved for examples, which the operator replaces.
    expect(ingress.from.flatMap(({ ipBlock }) => (ipBlock === undefined ? [] : [ipBlock.cidr]))).toEqual([
      '192.0.2.0/24',
    ])
  })

  it("allows the host names of the controller's service and of the ingress", () => {
    const { env = [] } =
      podsOf(applied).find(([name]) => name === 'headroom-controller')?.[1].containers[0] ?? {}
    const allowed = env.find(({ name }) => name === 'CONTROLLER_HTTP_ALLOWED_HOSTS')?.value?.split(',') ?? []
    const rules = hostRules(allowed)
    for (const host of [
      'headroom-controller:30080',
      'headroom-controller.headroom.svc:30080',
      one('Ingress', 'headroom').spec.rules[0].host as string,
    ]) {
      rules.require(host)
    }
    expect(() => rules.require('headroom-controller.evil.example')).toThrow()
  })

  it('has the ingress in an optional file', () => {
    expect(manifestsIn('ingress.yaml').map(({ kind }) => kind)).toEqual(['Ingress'])
    const [rule] = one('Ingress', 'headroom').spec.rules
    expect(rule.http.paths[0].backend.service).toEqual({
      name: 'headroom-controller',
      port: { name: 'http' },
    })
  })

  it('The example GPU server equals the output of `headroom nats config --kubernetes`', () => {
    const example = gpuServerManifest({ name: 'gpu-1', nodeId: null }, 'SUA...')
    expect(readFileSync(join(FOLDER, 'gpu-server.yaml'), 'utf8')).toBe(example)
  })

  it('A GPU server is root with named capabilities, has only its own key, and runs only on its node', () => {
    const [secret, workload] = parseAllDocuments(
      gpuServerManifest({ name: 'a.b', nodeId: '00000000-0000-0000-0000-000000000001' }, 'SUAX'),
    )
    const key = secret?.toJS() as {
      readonly metadata: { readonly name: string }
      readonly stringData: object
    }
    expect([key.metadata.name, key.stringData]).toEqual([
      'headroom-gpu-server-a.b-key',
      { 'node.nk': 'SUAX' },
    ])
    const pod = (workload?.toJS() as Manifest).spec.template.spec as PodSpec & {
      readonly nodeSelector: object
    }
    expect(pod.nodeSelector).toEqual({ 'kubernetes.io/hostname': 'a.b' })
    expect(pod.volumes.filter((volume) => 'secret' in volume).map(({ secret: source }) => source)).toEqual([
      { secretName: key.metadata.name, defaultMode: 0o400 },
    ])
    const [container] = pod.containers
    expect(container?.securityContext['capabilities']).toEqual({
      drop: ['ALL'],
      add: ['SETUID', 'SETGID', 'CHOWN', 'KILL', 'SYS_PTRACE', 'SYS_ADMIN'],
    })
    expect(container?.env).toContainEqual({ name: 'NODE_ID', value: '00000000-0000-0000-0000-000000000001' })
  })

  const pods = podsOf(files.flatMap(manifestsIn))

  it.each(pods)(
    '%s sets variables that are read, to values in range, and contains no secret',
    (_, { containers }) => {
      for (const { name, value, valueFrom } of containers.flatMap(({ env = [] }) => env)) {
        expect(NAMED).toContain(name)
        const variable = Object.values(ENVIRONMENT).find((each) => each.name === name)
        if (valueFrom === undefined)
          expect([name, variable?.read(value ?? '')]).not.toEqual([name, undefined])
        if (variable !== undefined && 'isSecret' in variable) expect(valueFrom).toHaveProperty('secretKeyRef')
      }
    },
  )

  it.each(pods)('%s mounts volumes that it declares and runs an existing command', (_, pod) => {
    const volumes = pod.volumes.map(({ name }) => name)
    for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
      for (const { name } of container.volumeMounts ?? []) expect(volumes).toContain(name)
    }
    for (const { image, args } of pod.containers) {
      if (image.startsWith('headroom-')) expect(whyNotUnderstood(args ?? [])).toBeNull()
    }
  })

  it.each(pods)('%s gets its keys from secrets that it names', (_, pod) => {
    const mounts = pod.containers.flatMap(({ volumeMounts = [] }) => volumeMounts)
    for (const { name, value } of pod.containers.flatMap(({ env = [] }) => env)) {
      if (name !== 'CONTROLLER_NATS_NKEY_FILE' && name !== 'CONTROLLER_ADMIN_TOKEN_FILE') continue
      const mount = mounts.find(({ mountPath }) => value?.startsWith(`${mountPath}/`))
      expect(pod.volumes.find((volume) => volume.name === mount?.name)).toHaveProperty('secret.secretName')
    }
  })
})
