/** Keeps the certificates of the webhooks, and tells the API server which authorities sign them. */
import { type KubeApi, MUTATING_WEBHOOKS, type ResourceKind, VALIDATING_WEBHOOKS } from '../ports/kube-api.ts'
import { type CertificateSecretOptions, existing, ownCertificates } from './certificate-secret.ts'
import type { OwnCertificates } from './own-certificates.ts'

export interface CertificateKeeperOptions extends CertificateSecretOptions {
  /** Name of both configurations of webhooks. */
  readonly configuration: string
  /** DNS names under which the API server calls. */
  readonly names: readonly string[]
}

/** Renews what is due, and tells the API server before anything new is served. Returns what to serve now. */
export async function keepCertificates(options: CertificateKeeperOptions): Promise<OwnCertificates> {
  const { api, configuration, names } = options
  const certificates = await ownCertificates(options, names)
  const caBundle = Buffer.from(certificates.authorities).toString('base64')
  for (const kind of [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS])
    await announce(api, kind, configuration, caBundle)
  return certificates
}

async function announce(api: KubeApi, kind: ResourceKind, name: string, caBundle: string): Promise<void> {
  const { webhooks = [] } = (await existing(api, kind, { name })) as unknown as Webhooks
  const steps = webhooks.flatMap(({ name: webhook, clientConfig }, index) =>
    clientConfig.caBundle === caBundle
      ? []
      : ([
          // Another writer may have changed the list meanwhile.
          { op: 'test', path: `/webhooks/${index}/name`, value: webhook },
          { op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle },
        ] as const),
  )
  if (steps.length > 0) await api.patch(kind, { name }, { type: 'json', body: steps })
}

interface Webhooks {
  readonly webhooks?: readonly {
    readonly name: string
    readonly clientConfig: { readonly caBundle?: string }
  }[]
}
