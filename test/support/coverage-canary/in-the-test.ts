export function canaryInTheTest(day: 'even' | 'odd'): string {
  if (day === 'odd') {
    return 'sings on odd days' // never runs
  }
  return 'sings in the test' // runs
}

export function silentCanary(): string {
  return 'is never called' // never runs
}
