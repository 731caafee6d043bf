/**
 * `make check-imports`. dependency-cruiser that cannot read TypeScript sees no module and is content, so beside the violations this
 * asks whether it saw every source file, and any import at all.
 */
import { cruiseImports } from './cruise-imports.ts'

const { moduleCount, importCount, violations, unseen } = await cruiseImports(process.cwd())

for (const { rule, from, to } of violations) console.error(`${rule}: ${from} imports ${to}`)
for (const file of unseen) console.error(`not seen: ${file}`)
if (importCount === 0) console.error('no import was seen')

if (violations.length + unseen.length > 0 || importCount === 0) process.exit(1)
console.log(`${moduleCount} modules and ${importCount} imports keep the import rules`)
