/* cudnn.h as candidates include it: see litetorch/library.h. */
#pragma once
#include "litetorch/library.h"

typedef struct cudnnContext *cudnnHandle_t;
typedef enum { CUDNN_STATUS_SUCCESS = 0, CUDNN_STATUS_NOT_INITIALIZED = 1, CUDNN_STATUS_BAD_PARAM = 2000,
               CUDNN_STATUS_NOT_SUPPORTED = 3000 } cudnnStatus_t;
typedef enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 } cudnnTensorFormat_t;
typedef enum { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_DOUBLE = 1, CUDNN_DATA_HALF = 2, CUDNN_DATA_INT8 = 3,
               CUDNN_DATA_INT32 = 4, CUDNN_DATA_BFLOAT16 = 9 } cudnnDataType_t;
typedef enum { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 } cudnnConvolutionMode_t;
typedef enum { CUDNN_DEFAULT_MATH = 0, CUDNN_TENSOR_OP_MATH = 1, CUDNN_FMA_MATH = 3 } cudnnMathType_t;
typedef enum { CUDNN_NOT_PROPAGATE_NAN = 0, CUDNN_PROPAGATE_NAN = 1 } cudnnNanPropagation_t;
typedef enum { CUDNN_POOLING_MAX = 0, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1,
               CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2 } cudnnPoolingMode_t;
typedef enum { CUDNN_ACTIVATION_SIGMOID = 0, CUDNN_ACTIVATION_RELU = 1, CUDNN_ACTIVATION_TANH = 2,
               CUDNN_ACTIVATION_IDENTITY = 5 } cudnnActivationMode_t;
typedef enum { CUDNN_SOFTMAX_FAST = 0, CUDNN_SOFTMAX_ACCURATE = 1, CUDNN_SOFTMAX_LOG = 2 } cudnnSoftmaxAlgorithm_t;
typedef enum { CUDNN_SOFTMAX_MODE_INSTANCE = 0, CUDNN_SOFTMAX_MODE_CHANNEL = 1 } cudnnSoftmaxMode_t;
typedef enum { CUDNN_BATCHNORM_PER_ACTIVATION = 0, CUDNN_BATCHNORM_SPATIAL = 1 } cudnnBatchNormMode_t;
typedef enum { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
               CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6 } cudnnConvolutionFwdAlgo_t;
typedef enum { CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,
               CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1 } cudnnConvolutionBwdDataAlgo_t;
typedef enum { CUDNN_CONVOLUTION_FWD_PREFER_FASTEST = 1 } cudnnConvolutionFwdPreference_t;
typedef struct { cudnnConvolutionFwdAlgo_t algo; cudnnStatus_t status; float time; size_t memory;
                 } cudnnConvolutionFwdAlgoPerf_t;
inline cudnnStatus_t cudnnCreate(cudnnHandle_t *h) { *h = reinterpret_cast<cudnnHandle_t>(1);
                                                     return CUDNN_STATUS_SUCCESS; }
inline cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
inline cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }
inline const char *cudnnGetErrorString(cudnnStatus_t) { return "cuDNN status"; }
#define CUDNN_BN_MIN_EPSILON 0.0
#define CUDNN_VERSION 90000
/* Descriptors can be made and filled; nothing reads them. */
#define LT_DESCRIPTOR(NAME)                                                                                    \
    typedef struct cudnn##NAME##Struct *cudnn##NAME##Descriptor_t;                                             \
    inline cudnnStatus_t cudnnCreate##NAME##Descriptor(cudnn##NAME##Descriptor_t *d)                           \
    {                                                                                                          \
        *d = reinterpret_cast<cudnn##NAME##Descriptor_t>(1);                                                   \
        return CUDNN_STATUS_SUCCESS;                                                                           \
    }                                                                                                          \
    inline cudnnStatus_t cudnnDestroy##NAME##Descriptor(cudnn##NAME##Descriptor_t) { return CUDNN_STATUS_SUCCESS; }
LT_DESCRIPTOR(Tensor)
LT_DESCRIPTOR(Filter)
LT_DESCRIPTOR(Convolution)
LT_DESCRIPTOR(Activation)
LT_DESCRIPTOR(Pooling)
LT_DESCRIPTOR(OpTensor)
LT_DESCRIPTOR(ReduceTensor)
LT_DESCRIPTOR(Dropout)
LT_DESCRIPTOR(RNN)
LT_DESCRIPTOR(LRN)
LT_DESCRIPTOR(SpatialTransformer)
LT_DESCRIPTOR(CTCLoss)
#undef LT_DESCRIPTOR
#define LT_SETTER(NAME) template <class... A> cudnnStatus_t NAME(A &&...) { return CUDNN_STATUS_SUCCESS; }
LT_SETTER(cudnnSetTensor4dDescriptor)
LT_SETTER(cudnnSetTensor4dDescriptorEx)
LT_SETTER(cudnnSetTensorNdDescriptor)
LT_SETTER(cudnnSetFilter4dDescriptor)
LT_SETTER(cudnnSetFilterNdDescriptor)
LT_SETTER(cudnnSetConvolution2dDescriptor)
LT_SETTER(cudnnSetConvolutionNdDescriptor)
LT_SETTER(cudnnSetConvolutionGroupCount)
LT_SETTER(cudnnSetConvolutionMathType)
LT_SETTER(cudnnSetActivationDescriptor)
LT_SETTER(cudnnSetPooling2dDescriptor)
LT_SETTER(cudnnSetPoolingNdDescriptor)
LT_SETTER(cudnnSetOpTensorDescriptor)
LT_SETTER(cudnnSetReduceTensorDescriptor)
LT_SETTER(cudnnDeriveBNTensorDescriptor)
#undef LT_SETTER
#define cudnnConvolutionForward(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnConvolutionForward")
#define cudnnConvolutionBiasActivationForward(...) LT_LIBRARY_CALL(cudnnStatus_t, \
                                                                   "cudnnConvolutionBiasActivationForward")
#define cudnnConvolutionBackwardData(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnConvolutionBackwardData")
#define cudnnConvolutionBackwardFilter(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnConvolutionBackwardFilter")
#define cudnnGetConvolutionForwardAlgorithm_v7(...) LT_LIBRARY_CALL(cudnnStatus_t, \
                                                                    "cudnnGetConvolutionForwardAlgorithm_v7")
#define cudnnGetConvolutionForwardAlgorithm(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnGetConvolutionForwardAlgorithm")
#define cudnnFindConvolutionForwardAlgorithm(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnFindConvolutionForwardAlgorithm")
#define cudnnGetConvolutionForwardWorkspaceSize(...) LT_LIBRARY_CALL(cudnnStatus_t, \
                                                                     "cudnnGetConvolutionForwardWorkspaceSize")
#define cudnnGetConvolutionBackwardDataWorkspaceSize(...) \
    LT_LIBRARY_CALL(cudnnStatus_t, "cudnnGetConvolutionBackwardDataWorkspaceSize")
#define cudnnGetConvolution2dForwardOutputDim(...) LT_LIBRARY_CALL(cudnnStatus_t, \
                                                                   "cudnnGetConvolution2dForwardOutputDim")
#define cudnnActivationForward(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnActivationForward")
#define cudnnPoolingForward(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnPoolingForward")
#define cudnnSoftmaxForward(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnSoftmaxForward")
#define cudnnBatchNormalizationForwardInference(...) LT_LIBRARY_CALL(cudnnStatus_t, \
                                                                     "cudnnBatchNormalizationForwardInference")
#define cudnnBatchNormalizationForwardTraining(...) LT_LIBRARY_CALL(cudnnStatus_t, \
                                                                    "cudnnBatchNormalizationForwardTraining")
#define cudnnAddTensor(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnAddTensor")
#define cudnnOpTensor(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnOpTensor")
#define cudnnReduceTensor(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnReduceTensor")
#define cudnnScaleTensor(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnScaleTensor")
#define cudnnTransformTensor(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnTransformTensor")
#define cudnnRNNForward(...) LT_LIBRARY_CALL(cudnnStatus_t, "cudnnRNNForward")
