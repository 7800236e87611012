// A stand-in for the driver's NVML with several GPUs. A GPU's handle is a pointer to its record. As in NVML,
// a function that a GPU does not support returns a nonzero code.
#include <cstring>

namespace {

struct Gpu {
  const char* bus_id;
  unsigned power_now_mw;  // 0: not supported
  unsigned long long reasons;
};

Gpu gpus[] = {{"0000:18:00.0", 690500, 0x4 | 0x8},
              {"0000:2a:00.0", 0, 0x1 | 0x40},
              {"0000:a0:00.0", 0, 0x1},
              {"0000:a1:00.0", 0, 0x4},
              {"0000:a2:00.0", 0, 0x80},
              {"0000:a3:00.0", 0, 0x20},
              {"0000:a4:00.0", 0, 0x40},
              {"0000:a5:00.0", 0, 0x8}};

constexpr int kNotSupported = 3, kInvalid = 2, kNotFound = 6;

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, status;
  unsigned long long value;
};

bool running = false;

}  // namespace

extern "C" {

// Not nvmlInitWithFlags: initialised first without GPUs, NVML has none for the rest of the process.
int nvmlInit_v2() {
  running = true;
  return 0;
}

int nvmlShutdown() {
  running = false;
  return 0;
}

int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::strncpy(text, "580.1", length);
  return running ? 0 : kInvalid;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Gpu** device) {
  for (Gpu& gpu : gpus) {
    if (running && std::strcmp(gpu.bus_id, bus_id) == 0) {
      *device = &gpu;
      return 0;
    }
  }
  return kNotFound;
}

int nvmlDeviceGetClockInfo(Gpu*, int clock, unsigned* mhz) {
  *mhz = 1755;
  return clock == 1 ? 0 : kInvalid;
}

int nvmlDeviceGetMaxClockInfo(Gpu*, int clock, unsigned* mhz) {
  *mhz = 1980;
  return clock == 1 ? 0 : kInvalid;
}

int nvmlDeviceGetFieldValues(Gpu* gpu, int count, FieldValue* values) {
  if (count != 1 || values->field != 186) return kInvalid;
  values->status = gpu->power_now_mw == 0 ? kNotSupported : 0;
  values->value = gpu->power_now_mw;
  return 0;
}

int nvmlDeviceGetPowerUsage(Gpu*, unsigned* milliwatts) {
  *milliwatts = 300000;
  return 0;
}

int nvmlDeviceGetPowerManagementLimit(Gpu*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return 0;
}

int nvmlDeviceGetTemperature(Gpu*, int sensor, unsigned* celsius) {
  *celsius = 64;
  return sensor == 0 ? 0 : kInvalid;
}

// The name in drivers before 535.
int nvmlDeviceGetCurrentClocksThrottleReasons(Gpu* gpu, unsigned long long* reasons) {
  *reasons = gpu->reasons;
  return 0;
}

}  // extern "C"
