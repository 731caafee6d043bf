/**
 * The part of kube-proxy: listens on the address of each Service, and connects to one of the pods that the
 * EndpointSlices of the controller manager name as ready. Names are given as lines of /etc/hosts.
 */
import type { KubeApi, ResourceKind } from '../../../operator/ports/kube-api.ts'
import type { Reflector } from '../../../operator/reflector/reflector.ts'
import { type Endpoint, Service } from './service.ts'

const SERVICES: ResourceKind = {
  ...{ group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true },
}
const ENDPOINT_SLICES: ResourceKind = {
  ...{ group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices', kind: 'EndpointSlice' },
  isNamespaced: true,
}
const SERVICE_OF_SLICE = 'kubernetes.io/service-name'

interface ServiceObject {
  readonly metadata: { readonly namespace?: string; readonly name?: string }
  readonly spec: {
    readonly clusterIP?: string
    readonly ports?: readonly { readonly name?: string; readonly port: number }[]
  }
}

interface EndpointSlice {
  readonly metadata: { readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> }
  /** Null: no pod is selected. */
  readonly ports: readonly { readonly name?: string; readonly port: number }[] | null
  readonly endpoints:
    | readonly { readonly addresses: readonly string[]; readonly conditions?: { readonly ready?: boolean } }[]
    | null
}

type Reflected = (kind: ResourceKind, onChange: () => void) => Reflector

export interface ServiceProxyOptions {
  readonly api: KubeApi
  readonly reflected: Reflected
  /** Where the Service `kubernetes` leads: a slice cannot have an address of the loopback interface. */
  readonly apiServer: Endpoint
  /** Called with the names and addresses of all Services. */
  readonly onHosts: (lines: string) => void
}

export class ServiceProxy {
  readonly #options: ServiceProxyOptions
  readonly #services: Reflector
  readonly #slices: Reflector
  /** By address and port. */
  readonly #open = new Map<string, Promise<Service>>()

  constructor(options: ServiceProxyOptions) {
    this.#options = options
    this.#services = options.reflected(SERVICES, () => this.#renew())
    this.#slices = options.reflected(ENDPOINT_SLICES, () => {})
  }

  async close(): Promise<void> {
    for (const service of this.#open.values()) await (await service).close()
  }

  #renew(): void {
    const all = [...this.#services.objects.values()] as unknown as readonly ServiceObject[]
    const wanted = new Map<string, () => Promise<Service>>()
    const hosts = ['127.0.0.1 localhost']
    for (const { metadata, spec } of all) {
      const { namespace = '', name = '' } = metadata
      const { clusterIP = 'None', ports = [] } = spec
      if (clusterIP === 'None') continue
      hosts.push(`${clusterIP} ${name}.${namespace}.svc ${name}.${namespace}.svc.cluster.local`)
      for (const { name: portName = '', port } of ports)
        wanted.set(`${clusterIP}:${port}`, () =>
          Service.start(() => this.#endpoints(namespace, name, portName), port, clusterIP),
        )
    }
    for (const [key, service] of this.#open)
      if (!wanted.has(key)) {
        this.#open.delete(key)
        void service.then((each) => each.close())
      }
    for (const [key, start] of wanted) if (!this.#open.has(key)) this.#open.set(key, start())
    this.#options.onHosts(`${hosts.join('\n')}\n`)
  }

  #endpoints(namespace: string, name: string, portName: string): readonly Endpoint[] {
    if (namespace === 'default' && name === 'kubernetes') return [this.#options.apiServer]
    const slices = [...this.#slices.objects.values()] as unknown as readonly EndpointSlice[]
    return slices
      .filter(
        ({ metadata }) => metadata.namespace === namespace && metadata.labels?.[SERVICE_OF_SLICE] === name,
      )
      .flatMap(({ ports, endpoints }) => {
        const port = ports?.find((each) => (each.name ?? '') === portName)?.port
        const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready === true)
        return port === undefined ? [] : ready.map(({ addresses }) => ({ host: addresses[0] ?? '', port }))
      })
  }
}
