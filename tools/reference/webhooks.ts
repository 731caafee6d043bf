/**
 * The webhook configurations in deploy/helm/headroom/files, made from operator/admission. A test holds that
 * they are as the code is now; the chart puts in the namespace.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { webhookConfigurations } from '../../operator/admission/webhook-configurations.ts'

const ROOT = join(import.meta.dirname, '../..')
export const WEBHOOKS_FILE = join(ROOT, 'deploy/helm/headroom/files/webhooks.yaml')
const COMMAND = 'node tools/reference/webhooks.ts'

export function webhooksText(): string {
  const place = { service: { namespace: 'NAMESPACE', name: 'headroom-admission', port: 443 } }
  const documents = webhookConfigurations(place, null).map((each) =>
    stringify(each, { lineWidth: 110, aliasDuplicateObjects: false }),
  )
  const head = `# Made by \`${COMMAND}\`; edit operator/admission/webhook-configurations.ts.\n`
  return `${head}${documents.join('---\n')}`
}

if (import.meta.main) writeFileSync(WEBHOOKS_FILE, webhooksText())
