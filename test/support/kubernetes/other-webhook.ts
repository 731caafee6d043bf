/** A mutating webhook of another product, which the API server calls after those of Headroom. */
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { textOf } from '../../../operator/adapters/answer-bytes.ts'
import { MUTATING_WEBHOOKS } from '../../../operator/ports/kube-api.ts'
import type { ControlPlane } from './control-plane.ts'

/** The API server calls webhooks in the order of these names. */
const NAME = 'sidecar-injector'
const MAX_REVIEW_BYTES = 1_000_000

/** Each new pod gets a container `sidecar`. Resolves with what removes the webhook. */
export async function addSidecarWebhook(plane: ControlPlane): Promise<() => Promise<void>> {
  const read = (name: string): Buffer => readFileSync(join(plane.folder, name))
  const server = createServer({ cert: read('server.pem'), key: read('server.key') }, (request, response) => {
    void textOf(request, MAX_REVIEW_BYTES).then((text) => response.end(answerTo(text)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }
  const api = plane.client()
  await api.create(MUTATING_WEBHOOKS, {
    metadata: { name: NAME },
    webhooks: [
      {
        ...{
          name: `${NAME}.example.com`,
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          rules: [rule],
        },
        clientConfig: { url: `https://localhost:${port}/`, caBundle: read('ca.pem').toString('base64') },
      },
    ],
  })
  return async () => {
    await api.delete(MUTATING_WEBHOOKS, { name: NAME })
    server.close()
    server.closeAllConnections()
  }
}

function answerTo(review: string): string {
  const { request } = JSON.parse(review) as {
    request: { uid: string; object: { spec: { containers: { name: string }[] } } }
  }
  const has = request.object.spec.containers.some(({ name }) => name === 'sidecar')
  const step = {
    op: 'add',
    path: '/spec/containers/-',
    value: { name: 'sidecar', image: 'registry.example/s:1' },
  }
  const patch = Buffer.from(JSON.stringify(has ? [] : [step])).toString('base64')
  const response = { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch }
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response })
}
