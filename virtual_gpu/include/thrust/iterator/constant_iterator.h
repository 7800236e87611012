#include "../../vgpu/thrust_unsupported.h"
