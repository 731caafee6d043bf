/** Is run for each test file. */
import { afterAll, afterEach } from 'vitest'
import { endFile, endTest } from './endings.ts'

afterEach(endTest)
afterAll(endFile)
