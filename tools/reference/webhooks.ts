/**
 * The webhook configurations and policies in deploy/helm/headroom/files, made from operator/admission. A test
 * holds that they are as the code is now; the chart puts in the namespace.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { admissionPolicies } from '../../operator/admission/admission-policies.ts'
import { webhookConfigurations } from '../../operator/admission/webhook-configurations.ts'

const ROOT = join(import.meta.dirname, '../..')
export const WEBHOOKS_FILE = join(ROOT, 'deploy/helm/headroom/files/webhooks.yaml')
export const POLICIES_FILE = join(ROOT, 'deploy/helm/headroom/files/policies.yaml')
const COMMAND = 'node tools/reference/webhooks.ts'

export function webhooksText(): string {
  const place = { service: { namespace: 'NAMESPACE', name: 'headroom-admission', port: 443 } }
  return textOf(webhookConfigurations(place, null), 'webhook-configurations.ts')
}

export function policiesText(): string {
  return textOf(admissionPolicies('NAMESPACE'), 'admission-policies.ts')
}

function textOf(objects: readonly object[], source: string): string {
  const documents = objects.map((each) => stringify(each, { lineWidth: 110, aliasDuplicateObjects: false }))
  return `# Made by \`${COMMAND}\`; edit operator/admission/${source}.\n${documents.join('---\n')}`
}

if (import.meta.main) {
  writeFileSync(WEBHOOKS_FILE, webhooksText())
  writeFileSync(POLICIES_FILE, policiesText())
}
