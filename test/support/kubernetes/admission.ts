/** The webhooks on a free port, with the certificate of a folder. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AdmissionServer } from '../../../operator/adapters/admission-server.ts'
import { DEFAULT_ADMISSION } from '../../../operator/admission/admission-options.ts'
import type { KubeApi } from '../../../operator/ports/kube-api.ts'

/** @param folder with server.pem and server.key, as makeCertificates writes them */
export function startAdmission(
  folder: string,
  api: KubeApi,
  log: (line: string) => void = () => {},
): Promise<AdmissionServer> {
  const text = (name: string): string => readFileSync(join(folder, name), 'utf8')
  return AdmissionServer.start({
    ...DEFAULT_ADMISSION,
    host: '127.0.0.1',
    port: 0,
    cert: text('server.pem'),
    key: text('server.key'),
    api,
    log,
    forecast: () => Promise.resolve([]),
  })
}
